package ingest_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ragd/ingest"
	"ragd/ingest/chunk"
	"ragd/ingest/ingesttest"
)

// TestTokenStates: each chunk keeps the states of its own tokens, also one whose text
// stood elsewhere before; sentences ask for none, and documents from before are stale.
func TestTokenStates(t *testing.T) {
	// More than a window lies between the two documents of the same text.
	var filler strings.Builder
	for i := range 60 {
		fmt.Fprintf(&filler, "Filler %d about a valve. ", i)
	}
	r := newRoad(t, map[string]string{
		"a.md": "The pump is checked daily. It is blue.", "b.md": filler.String(), "z.md": "The pump is checked daily. It is blue.",
	})
	r.expect("3 0 0 0 0 0")
	for _, s := range r.store.Documents("c") {
		if s.States != nil {
			t.Errorf("%s keeps states that nobody wants", s.Document.Path)
		}
	}
	e := &ingesttest.StateEmbedder{}
	r.config.States = true
	report := r.statesRun(e)
	if report.Indexed != 3 {
		t.Fatalf("%+v", report)
	}
	chunks := 0
	for path, s := range r.store.Documents("c") {
		if !strings.HasSuffix(s.Recipe, "; token states") || len(s.States) != len(s.Chunks) {
			t.Errorf("%s: recipe %q, states of %d of %d chunks", path, s.Recipe, len(s.States), len(s.Chunks))
		}
		for i := range s.Chunks {
			chunks++
			if diff := cmp.Diff(ingesttest.StatesOf(s.Chunks[i].EmbedText(), 1000), s.States[i]); diff != "" {
				t.Errorf("%s, chunk %d:\n%s", path, i, diff)
			}
		}
	}
	if n := int(e.Wanted.Load()); n != chunks {
		t.Errorf("the states of %d texts were asked for, of %d chunks", n, chunks)
	}
	if report = r.statesRun(e); report.Unchanged != 3 {
		t.Errorf("again: %+v", report)
	}
}

func (r *road) statesRun(e ingest.Embedder) ingest.Report {
	r.Helper()
	chunker, err := chunk.New(e, chunk.Config{Target: 64, Max: e.MaxTokens(), Overlap: 10})
	if err != nil {
		r.Fatal(err)
	}
	p, err := ingest.New(r.source, chunker, e, r.store, r.config, nil)
	if err != nil {
		r.Fatal(err)
	}
	report, err := p.Run(r.Context(), []string{filepath.Clean(r.dir)})
	if err != nil {
		r.Fatal(err)
	}
	return report
}

func TestTokenStatesNeedAnEmbedder(t *testing.T) {
	r := newRoad(t, nil)
	r.config.States = true
	if _, err := ingest.New(r.source, nil, r.embedder, r.store, r.config, nil); !errors.Is(err, ingest.ErrStates) {
		t.Errorf("got %v", err)
	}
}
