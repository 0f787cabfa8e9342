package store_test

import (
	"testing"

	"github.com/jackc/pgx/v5"

	"ragd/ingest/store"
	"ragd/internal/testenv"
	"ragd/retrieve/lexical"
)

func TestNeighbours(t *testing.T) {
	pool := testenv.Database(t)
	s := store.New(pool, tenant, lexical.Analyzer{})
	put(t, s, "default", encoded("a.md", "one one", "two two", "three three"))
	put(t, s, "default", encoded("b.md", "alone"))
	ids := map[string]int64{}
	rows, err := pool.Query(t.Context(), "SELECT text, id FROM ragd.chunks")
	if err != nil {
		t.Fatal(err)
	}
	var text string
	var id int64
	if _, err := pgx.ForEachRow(rows, []any{&text, &id}, func() error { ids[text] = id; return nil }); err != nil {
		t.Fatal(err)
	}
	got, err := s.Neighbours(t.Context(), []int64{ids["one one"], ids["two two"], ids["alone"], -1})
	if err != nil {
		t.Fatal(err)
	}
	for of, want := range map[string][]string{"one one": {"two two"}, "two two": {"one one", "three three"}, "alone": nil} {
		list := got[ids[of]]
		if len(list) != len(want) {
			t.Errorf("%s has %d neighbours, want %v", of, len(list), want)
			continue
		}
		for i, n := range list {
			if n.Text != want[i] || n.ID != ids[want[i]] || n.End-n.Start != len(n.Text) || len(n.Heading) != 2 {
				t.Errorf("%s: neighbour %+v, want %s", of, n, want[i])
			}
		}
	}
}
