package vector

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ragd/ingest"
	"ragd/internal/testenv"
	"ragd/retrieve"
)

// about is a unit vector near a centre.
func about(rng *rand.Rand, centre []float32, noise float32) []float32 {
	v, u := make([]float32, dim), unit(rng)
	for i := range v {
		v[i] = centre[i] + noise*u[i]
	}
	return normal(v)
}

// TestFilterPlans holds OB-24 as a kind: whatever share of a clustered corpus a filter
// keeps, and wherever in it, a query gets min(k, matches) chunks, all of them the filter's;
// in the exact order where few come into question, with a recall of 0.95 where the
// index is walked. EXPLAIN shows which of the two it was, by count and not by the
// planner's estimates: the statistics of the tables are stale.
func TestFilterPlans(t *testing.T) {
	pool := testenv.Database(t)
	rng := rand.New(rand.NewPCG(21, 22))
	const topics, documents, size, below = 20, 600, 10, 1000
	centres := make([][]float32, topics)
	for i := range centres {
		centres[i] = unit(rng)
	}
	var docs []ingest.Encoded
	for i := range documents {
		topic := rng.IntN(topics)
		n := size
		if i == 7 {
			n = 1
		}
		d := document(rng, fmt.Sprintf("d/%03d", i), n, map[string]any{
			"half": fmt.Sprint(i % 2), "hundredth": fmt.Sprint(i % 100), "number": fmt.Sprint(i), "topic": fmt.Sprint(topic),
		})
		for j := range d.Vectors {
			d.Vectors[j] = about(rng, centres[topic], 0.4)
		}
		docs = append(docs, d)
		put(t, pool, "many", d)
	}
	buildIndex(t, pool, "many")
	// The planner believes that there is one chunk.
	if _, err := pool.Exec(t.Context(), "UPDATE pg_class SET reltuples = 1, relpages = 1 WHERE relname IN ('vectors', 'documents')"); err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct {
		name, key, value string
		exact            bool
	}{
		{"all", "", "", false},
		{"50 %", "half", "1", false},
		{"5 %, a cluster", "topic", "3", true},
		{"1 %", "hundredth", "8", true},
		{"10 of 6,000", "number", "3", true},
		{"1 chunk", "number", "7", true},
		{"none", "number", "x", true},
	} {
		keep := func(d ingest.Document) bool { return f.key == "" || d.Metadata[f.key] == f.value }
		for name, cfg := range map[string]Config{"by size": {ExactBelow: below}, "always the index": {ExactBelow: 1}} {
			r := New(pool, tenant, cfg)
			exact := f.exact && cfg.ExactBelow == below
			for _, limit := range []int{1, 10, 60} {
				q := retrieve.Query{Model: testModel, Collections: []string{"many"}, Limit: limit}
				if f.key != "" {
					q.Filters.Metadata = map[string][]string{f.key: {f.value}}
				}
				sum := 0.0
				queries := max(6, 60/limit) // one of six single hits would weigh 17 %
				for i := range queries {
					q.Vector = about(rng, centres[i%topics], 0.5) // mostly far from the topic that is kept
					want := nearest(docs, q.Vector, limit, keep)
					hits := search(t, r, q)
					if len(hits) != len(want) {
						t.Errorf("%s, %s: %d of %d chunks", f.name, name, len(hits), len(want))
					}
					for _, h := range hits {
						if !slices.ContainsFunc(docs, func(d ingest.Encoded) bool { return d.Document.Path == h.Document.Path && keep(d.Document) }) {
							t.Errorf("%s, %s: %s does not match", f.name, name, h.Document.Path)
						}
					}
					got := recall(hits, want)
					if exact && !asNear(docs, q.Vector, hits, want) {
						t.Errorf("%s, %s, limit %d: exact search finds %.2f", f.name, name, limit, got)
					}
					sum += got
				}
				if sum/float64(queries) < 0.95 {
					t.Errorf("%s, %s, limit %d: recall %.2f", f.name, name, limit, sum/float64(queries))
				}
			}
			checkWays(t, r, f.name+", "+name, f.key, f.value, exact, rng)
		}
	}
}

// asNear reports whether no hit is further from v than the last one wanted, but for
// the rounding of stored vectors to half floats.
func asNear(docs []ingest.Encoded, v []float32, hits []retrieve.Hit, want []string) bool {
	const rounding = 1e-3
	cosines := map[string]float64{}
	for _, d := range docs {
		for i, c := range d.Chunks {
			cosines[c.Text] = dot(v, d.Vectors[i])
		}
	}
	for _, h := range hits {
		if cosines[h.Chunk.Text] < cosines[want[len(want)-1]]-rounding {
			return false
		}
	}
	return true
}

// checkWays: the plan is the one that the number of chunks calls for.
func checkWays(t *testing.T, r *Retriever, name, key, value string, exact bool, rng *rand.Rand) {
	t.Helper()
	q := retrieve.Query{Vector: unit(rng), Model: testModel, Collections: []string{"many"}, Limit: 20}
	if key != "" {
		q.Filters.Metadata = map[string][]string{key: {value}}
	}
	ways, err := r.Explain(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	if value == "x" {
		if len(ways) != 0 {
			t.Errorf("%s: %+v", name, ways)
		}
		return
	}
	if len(ways) != 1 || ways[0].Exact != exact || strings.Contains(ways[0].Plan, "Index Scan using vectors_hnsw") == exact {
		t.Errorf("%s: %+v, exact wanted: %v", name, ways, exact)
	}
}
