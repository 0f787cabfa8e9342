package lexical

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ragd/ingest"
	"ragd/ingest/store"
	"ragd/internal/testenv"
	"ragd/retrieve"
)

// TestLateFilters: held to the filters at the end, the best matches are those that
// are found when all others are left out from the start.
func TestLateFilters(t *testing.T) {
	pool := testenv.Database(t)
	s := store.New(pool, "acme", Analyzer{})
	rng := rand.New(rand.NewPCG(31, 32))
	vocabulary := strings.Fields("pump valve rotor relay motor gasket 밸브 펌프")
	for i := range 120 {
		e := ingest.Encoded{Document: ingest.Document{
			Path: fmt.Sprint(i), Hash: fmt.Sprint(i), Metadata: map[string]any{"half": fmt.Sprint(i % 2), "tenth": fmt.Sprint(i % 10)},
		}}
		for j := range 5 {
			var words []string
			for range 1 + rng.IntN(20) {
				words = append(words, vocabulary[rng.IntN(len(vocabulary))])
			}
			text := strings.Join(words, " ")
			e.Chunks = append(e.Chunks, ingest.Chunk{Ordinal: j, Text: text, End: len(text), Tokens: 1})
			e.Vectors = append(e.Vectors, []float32{1, float32(j)})
		}
		if _, err := s.Put(t.Context(), "default", "m", "r", e); err != nil {
			t.Fatal(err)
		}
	}
	early, late := New(pool, "acme", Analyzer{}), New(pool, "acme", Analyzer{})
	late.wide = 0
	for _, f := range []retrieve.Filters{
		{},
		{Metadata: map[string][]string{"half": {"1"}}},
		{Metadata: map[string][]string{"tenth": {"3", "4"}}},
		{PathPrefix: "7"},
		{PathPrefix: "x"},
		{Metadata: map[string][]string{"half": {"1"}, "tenth": {"2"}}},
	} {
		for _, text := range []string{"pump", "relay 밸브", "the rotor of the motor", "nothing"} {
			for _, limit := range []int{1, 7, 100, 1000} {
				q := retrieve.Query{Text: text, Collections: []string{"default"}, Limit: limit, Filters: f}
				a, err := early.Search(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				b, err := late.Search(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				if want, got := a.Top(limit), b.Top(limit); !slices.Equal(want, got) {
					t.Errorf("%+v, %q, limit %d: %v, want %v", f, text, limit, got, want)
				}
				for _, match := range a.Top(limit) {
					if b.Score(match.Chunk) != match.Score {
						t.Errorf("%+v, %q: chunk %d scores %g", f, text, match.Chunk, b.Score(match.Chunk))
					}
				}
			}
		}
	}
}
