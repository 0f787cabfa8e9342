package ingesttest

import (
	"context"
	"strings"
	"sync/atomic"

	"ragd/ingest"
)

// StateEmbedder is a FakeEmbedder that gives a state for every word of a text: the
// word's own vector in int8, with a scale of 1/100.
type StateEmbedder struct {
	FakeEmbedder
	// Wanted counts the texts whose states were asked for.
	Wanted atomic.Int64
}

var _ ingest.StateEmbedder = (*StateEmbedder)(nil)

// EmbedPassageStates implements ingest.StateEmbedder.
func (f *StateEmbedder) EmbedPassageStates(ctx context.Context, texts []string, wanted []bool, limit int) ([]ingest.Embedding, error) {
	out, err := f.EmbedPassages(ctx, texts)
	if err != nil {
		return nil, err
	}
	for i, t := range texts {
		if wanted[i] {
			f.Wanted.Add(1)
			out[i].States = StatesOf(t, limit)
		}
	}
	return out, nil
}

// StatesOf is what a StateEmbedder gives for a text.
func StatesOf(text string, limit int) *ingest.States {
	s := &ingest.States{}
	for w := range strings.FieldsSeq(text) {
		if s.Tokens() == limit {
			break
		}
		s.Scales = append(s.Scales, 0.01)
		for _, x := range hashWords(w) {
			s.Values = append(s.Values, int8(100*x))
		}
	}
	return s
}
