// Package ingesttest holds what tests of the document road share: a
// deterministic embedder, a store in memory, and the conformance suite that
// every ingest.Store has to pass.
package ingesttest

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"strings"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"ragd/ingest"
)

// FakeEmbedder encodes a text as a bag of hashed words, so that texts sharing
// words are close. It counts tokens by a rule as uneven as a real vocabulary's:
// a word takes one token for each four letters begun, a sign one, and every
// passage three more.
type FakeEmbedder struct {
	// Name is the model's name; "fake" when empty.
	Name string
	// Limit is MaxTokens; 512 when 0.
	Limit int
	// Refuse makes a call fail that holds a text containing this.
	Refuse string
	// Calls and Texts count what was asked for.
	Calls, Texts atomic.Int64
}

var _ ingest.Embedder = (*FakeEmbedder)(nil)

const (
	fakeDim      = 16
	fakeOverhead = 3
)

// ErrRefused is the error of a refused text.
var ErrRefused = errors.New("refused by the fake embedder")

// Model is the name.
func (f *FakeEmbedder) Model() string {
	if f.Name == "" {
		return "fake"
	}
	return f.Name
}

// Dim is 16.
func (f *FakeEmbedder) Dim() int { return fakeDim }

// MaxTokens is the limit of one passage.
func (f *FakeEmbedder) MaxTokens() int {
	if f.Limit == 0 {
		return 512
	}
	return f.Limit
}

// CountPassage counts the tokens of a passage.
func (f *FakeEmbedder) CountPassage(text string) int {
	n, run := fakeOverhead, 0
	for _, r := range text {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.Is(unicode.M, r):
			if run%4 == 0 {
				n++
			}
			run++
			continue
		case !unicode.IsSpace(r):
			n++
		}
		run = 0
	}
	return n
}

// EmbedPassages encodes texts; a text over the limit, a blank one or a refused
// one fails the call.
func (f *FakeEmbedder) EmbedPassages(ctx context.Context, texts []string) ([]ingest.Embedding, error) {
	f.Calls.Add(1)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := make([]ingest.Embedding, len(texts))
	for i, t := range texts {
		n := f.CountPassage(t)
		switch {
		case f.Refuse != "" && strings.Contains(t, f.Refuse):
			return nil, ErrRefused
		case n > f.MaxTokens():
			return nil, fmt.Errorf("passage of %d tokens exceeds %d", n, f.MaxTokens())
		case strings.TrimSpace(t) == "" || !utf8.ValidString(t):
			return nil, fmt.Errorf("blank or broken passage %q", t)
		}
		out[i] = ingest.Embedding{Vector: hashWords(t), Tokens: n}
	}
	f.Texts.Add(int64(len(texts)))
	return out, nil
}

// hashWords is a unit vector of the hashed words.
func hashWords(text string) []float32 {
	v := make([]float32, fakeDim)
	for _, w := range strings.Fields(strings.ToLower(text)) {
		h := fnv.New32a()
		h.Write([]byte(w))
		sum := h.Sum32()
		sign := float32(1)
		if sum&1 == 1 {
			sign = -1
		}
		v[(sum>>1)%fakeDim] += sign
	}
	norm := 0.0
	for _, x := range v {
		norm += float64(x) * float64(x)
	}
	if norm == 0 {
		v[0], norm = 1, 1
	}
	scale := float32(1 / math.Sqrt(norm))
	for i := range v {
		v[i] *= scale
	}
	return v
}
