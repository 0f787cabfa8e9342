package store_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"ragd/ingest"
	"ragd/ingest/store"
	"ragd/internal/testenv"
	"ragd/retrieve/lexical"
)

// TestModelOfACollection: a collection has the model of its first vectors until it
// is empty again; documents of another model are refused, and nothing of them is
// kept.
func TestModelOfACollection(t *testing.T) {
	pool := testenv.Database(t)
	s := store.New(pool, tenant, lexical.Analyzer{})
	for _, step := range []struct {
		model  string
		e      ingest.Encoded
		delete string
		have   string // of the refusal
		want   string // the collection's model afterwards
	}{
		{model: "any", e: encoded("blank.md"), want: ""},
		{model: "small", e: encoded("a.md", "one"), want: "small"},
		{model: "big", e: encoded("a.md", "two"), have: "small", want: "small"},
		{model: "big", e: encoded("b.md", "two"), have: "small", want: "small"},
		{model: "small", e: encoded("a.md", "three"), want: "small"},
		{delete: "a.md", want: ""},
		{model: "big", e: encoded("b.md", "two"), want: "big"},
		{model: "small", e: encoded("a.md", "one"), have: "big", want: "big"},
	} {
		var err error
		if step.delete != "" {
			_, err = s.Delete(t.Context(), "default", []string{step.delete})
		} else {
			_, err = s.Put(t.Context(), "default", step.model, recipe, step.e)
		}
		var refused *ingest.ModelError
		switch {
		case step.have == "" && err != nil:
			t.Errorf("%+v: %v", step, err)
		case step.have != "" && (!errors.As(err, &refused) || *refused != ingest.ModelError{Collection: "default", Have: step.have, Want: step.model}):
			t.Errorf("%+v: %v", step, err)
		}
		if got, err := s.Model(t.Context(), "default"); err != nil || got != step.want {
			t.Errorf("after %+v the model is %q (%v)", step, got, err)
		}
		checkCounters(t, pool)
	}
	if got, err := s.Model(t.Context(), "unknown"); err != nil || got != "" {
		t.Errorf("unknown collection: %q, %v", got, err)
	}
}

// TestTwoModelsAtOnce: of two models that come first at the same time, one gets the
// collection.
func TestTwoModelsAtOnce(t *testing.T) {
	pool := testenv.Database(t)
	var stored, refused atomic.Int32
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			m := []string{"small", "big"}[i%2]
			_, err := store.New(pool, tenant, lexical.Analyzer{}).Put(t.Context(), "default", m, recipe, encoded(string(rune('a'+i)), m))
			switch {
			case err == nil:
				stored.Add(1)
			case errors.Is(err, ingest.ErrModel):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if stored.Load() != 4 || refused.Load() != 4 {
		t.Errorf("%d stored, %d refused, want 4 of each", stored.Load(), refused.Load())
	}
	checkCounters(t, pool)
}

// TestIndexOfALargeCollection: the writer that brings a collection over the size
// makes its index, once; one that was cut off is built again.
func TestIndexOfALargeCollection(t *testing.T) {
	pool := testenv.Database(t)
	s := store.New(pool, tenant, lexical.Analyzer{})
	indexes := func() (n int) {
		t.Helper()
		err := pool.QueryRow(t.Context(), `
			SELECT count(*) FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid WHERE c.relname ~ '^vectors_hnsw' AND x.indisvalid`).Scan(&n)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	texts := make([]string, 4999)
	for i := range texts {
		texts[i] = "x"
	}
	put(t, s, "default", encoded("a.md", texts...))
	put(t, s, "default", encoded("b.md", texts...))
	if n := indexes(); n != 0 {
		t.Fatalf("%d indexes over 9,998 chunks", n)
	}
	if _, err := pool.Exec(t.Context(), "CREATE INDEX vectors_hnsw_1_1 ON ragd.vectors (chunk_id)"); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'ragd.vectors_hnsw_1_1'::regclass"); err != nil {
		t.Fatal(err)
	}
	put(t, s, "other", encoded("a.md", texts...))
	put(t, s, "default", encoded("c.md", "x", "y"))
	if n := indexes(); n != 1 {
		t.Fatalf("%d indexes over 10,000 chunks", n)
	}
}
