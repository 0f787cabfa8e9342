package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ragd/ingest"
	"ragd/ingest/ingesttest"
	"ragd/ingest/store"
)

// states gives the token states of all chunks of a model, and checks that none are left
// of chunks that are gone.
func (s *shelf) states(model string) map[int64]ingest.States {
	s.Helper()
	var ids []int64
	for _, r := range s.rows(model) {
		ids = append(ids, r.Chunk.ID)
	}
	out, err := s.store.TokenStates(s.Context(), model, 16, ids)
	if err != nil {
		s.Fatal(err)
	}
	var rows, foreign int
	err = s.pool.QueryRow(s.Context(), `
		SELECT count(*), count(*) FILTER (WHERE d.collection_id IS DISTINCT FROM t.collection_id)
		FROM ragd.token_states t LEFT JOIN ragd.chunks c ON c.id = t.chunk_id LEFT JOIN ragd.documents d ON d.id = c.document_id`).Scan(&rows, &foreign)
	if err != nil || rows != len(out) || foreign != 0 {
		s.Errorf("%d rows of states for %d chunks, %d of another collection (%v)", rows, len(out), foreign, err)
	}
	return out
}

func withStates(e ingest.Encoded) ingest.Encoded {
	for i := range e.Chunks {
		e.States = append(e.States, ingesttest.StatesOf(e.Chunks[i].EmbedText(), 100))
	}
	return e
}

func TestTokenStatesFollowTheirDocument(t *testing.T) {
	s := newShelf(t, 0)
	e := withStates(ingesttest.NewEncoded("a", "one"))
	e.States[1] = &ingest.States{} // a chunk that has none
	put := func(e ingest.Encoded) {
		t.Helper()
		if _, err := s.store.Put(t.Context(), "default", "fake", "r", e); err != nil {
			t.Fatal(err)
		}
	}
	put(e)
	got := s.states("fake")
	for i, r := range s.rows("fake") {
		have, ok := got[r.Chunk.ID]
		if !ok || have.Tokens() != e.States[i].Tokens() {
			t.Errorf("chunk %d: %d states, %v", i, have.Tokens(), ok)
		}
		if diff := cmp.Diff(*e.States[i], have); have.Tokens() > 0 && diff != "" {
			t.Errorf("chunk %d:\n%s", i, diff)
		}
	}
	if _, err := s.store.TokenStates(t.Context(), "fake", 15, []int64{s.rows("fake")[0].Chunk.ID}); err == nil {
		t.Error("states were read as those of another dimension")
	}
	if other, err := s.store.TokenStates(t.Context(), "another", 16, []int64{s.rows("fake")[0].Chunk.ID}); err != nil || len(other) != 0 {
		t.Errorf("states of another model: %v, %v", other, err)
	}
	put(ingesttest.NewEncoded("a", "two")) // replaced by one without states
	if n := len(s.states("fake")); n != 0 {
		t.Errorf("%d states after the document was replaced", n)
	}
	put(withStates(ingesttest.NewEncoded("a", "three")))
	if n := len(s.states("fake")); n != 2 {
		t.Errorf("%d states of 2 chunks", n)
	}
	if _, err := s.store.Delete(t.Context(), "default", []string{"a"}); err != nil {
		t.Fatal(err)
	}
	s.states("fake")
	for name, spoil := range map[string]func(*ingest.Encoded){
		"of one chunk":  func(e *ingest.Encoded) { e.States = e.States[:1] },
		"cut short":     func(e *ingest.Encoded) { e.States[0].Values = e.States[0].Values[1:] },
		"past the most": func(e *ingest.Encoded) { e.States[0] = many(ingest.MaxStates(16) + 1) },
	} {
		e := withStates(ingesttest.NewEncoded("b", name))
		spoil(&e)
		if _, err := s.store.Put(t.Context(), "default", "fake", "r", e); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func many(n int) *ingest.States {
	return &ingest.States{Scales: make([]float32, n), Values: make([]int8, 16*n)}
}

// reembedStates runs once with token states.
func (s *shelf) reembedStates(ctx context.Context, e ingest.Embedder) (ingest.RevisionReport, error) {
	s.Helper()
	r, err := s.store.Reembed(ctx, "default", e.Model(), e.Dim(), true)
	if err != nil {
		return ingest.RevisionReport{}, err
	}
	defer r.Close()
	c := ingest.DefaultConfig("default")
	c.States = true
	return ingest.NewReembedder(e, c, nil).Run(ctx, r, ingest.RevisionReport{Collection: "default", From: r.From(), To: e.Model()})
}

// TestReembedFillsTokenStates: of the same model only the states are made, of another
// all; an interrupted run goes on where it was.
func TestReembedFillsTokenStates(t *testing.T) {
	s := newShelf(t, 40)
	e := &ingesttest.StateEmbedder{}
	before := s.rows("fake")
	ctx, stop := context.WithCancel(t.Context())
	r, err := s.store.Reembed(ctx, "default", "fake", e.Dim(), true)
	if err != nil {
		t.Fatal(err)
	}
	c := ingest.DefaultConfig("default")
	c.States = true
	report, err := ingest.NewReembedder(e, c, func(p ingest.RevisionProgress) {
		if p.Done > 0 {
			stop()
		}
	}).Run(ctx, r, ingest.RevisionReport{Collection: "default", From: "fake", To: "fake"})
	r.Close()
	if !errors.Is(err, context.Canceled) || report.Chunks == 0 || report.Chunks == 80 {
		t.Fatalf("interrupted: %+v, %v", report, err)
	}
	report, err = s.reembedStates(t.Context(), e)
	if err != nil || !report.Switched || report.Total != 80 || report.Chunks == 0 || report.Chunks == 80 {
		t.Errorf("%+v, %v", report, err)
	}
	if e.Texts.Load() != 80 || e.Wanted.Load() != 80 {
		t.Errorf("%d texts embedded, the states of %d, for 80 chunks with their vectors", e.Texts.Load(), e.Wanted.Load())
	}
	got := s.states("fake")
	for _, r := range before {
		have := got[r.Chunk.ID]
		if diff := cmp.Diff(*ingesttest.StatesOf(r.Chunk.EmbedText(), 1000), have); diff != "" {
			t.Fatalf("%s:\n%s", r.Path, diff)
		}
	}
	if diff := cmp.Diff(before, s.rows("fake")); diff != "" {
		t.Errorf("vectors changed:\n%s", diff)
	}
	var recipes int
	if err := s.pool.QueryRow(t.Context(), "SELECT count(*) FROM ragd.documents WHERE recipe = $1", oldRecipe+"; token states").Scan(&recipes); err != nil || recipes != 40 {
		t.Errorf("%d recipes (%v)", recipes, err)
	}
	checkCounters(t, s.pool)

	other := &ingesttest.StateEmbedder{FakeEmbedder: ingesttest.FakeEmbedder{Name: "other"}}
	if report, err = s.reembedStates(t.Context(), other); err != nil || !report.Switched || report.Chunks != 80 {
		t.Errorf("another model: %+v, %v", report, err)
	}
	if n := len(s.states("other")); n != 80 {
		t.Errorf("%d states of the other model", n)
	}
	if _, err := s.reembedStates(t.Context(), newWide()); !errors.Is(err, ingest.ErrStates) {
		t.Errorf("an embedder without states: %v", err)
	}
}
