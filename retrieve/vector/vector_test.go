package vector

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"ragd/ingest"
	"ragd/ingest/store"
	"ragd/internal/testenv"
	"ragd/retrieve"
	"ragd/retrieve/lexical"
)

const (
	dim       = 32
	tenant    = "acme"
	testModel = "test-model"
)

func unit(rng *rand.Rand) []float32 {
	v := make([]float32, dim)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return normal(v)
}

// normal gives v the length 1.
func normal(v []float32) []float32 {
	length := float32(math.Sqrt(dot(v, v)))
	for i := range v {
		v[i] /= length
	}
	return v
}

// document has n chunks with random vectors.
func document(rng *rand.Rand, path string, n int, metadata map[string]any) ingest.Encoded {
	e := ingest.Encoded{Document: ingest.Document{Path: path, Title: "T " + path, Hash: fmt.Sprint(rng.Uint64()), Metadata: metadata}}
	for i := range n {
		v := unit(rng)
		e.Chunks = append(e.Chunks, ingest.Chunk{
			Ordinal: i, Heading: []string{path}, Text: fmt.Sprintf("%s chunk %d", path, i), Page: 1, End: 5, Tokens: 3,
			Sentences: []ingest.Span{{Start: 0, End: 5}},
		})
		e.Vectors = append(e.Vectors, v)
		e.Sentences = append(e.Sentences, [][]float32{v})
	}
	return e
}

func put(t *testing.T, pool *pgxpool.Pool, collection string, e ingest.Encoded) {
	t.Helper()
	if _, err := store.New(pool, tenant, lexical.Analyzer{}).Put(t.Context(), collection, testModel, "r", e); err != nil {
		t.Fatal(err)
	}
}

// buildIndex gives a collection its index, small as it is.
func buildIndex(t *testing.T, pool *pgxpool.Pool, collection string) {
	t.Helper()
	if err := store.New(pool, tenant, lexical.Analyzer{}).BuildIndex(t.Context(), collection); err != nil {
		t.Fatal(err)
	}
	if _, err := pool.Exec(t.Context(), "ANALYZE"); err != nil {
		t.Fatal(err)
	}
}

func search(t *testing.T, r *Retriever, q retrieve.Query) []retrieve.Hit {
	t.Helper()
	if q.Model == "" {
		q.Model = testModel
	}
	hits, err := r.Retrieve(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	checkOrder(t, hits, q)
	return hits
}

// checkOrder holds what every result promises.
func checkOrder(t *testing.T, hits []retrieve.Hit, q retrieve.Query) {
	t.Helper()
	if len(hits) > q.Limit {
		t.Errorf("%d hits, limit %d", len(hits), q.Limit)
	}
	seen := map[int64]bool{}
	for i, h := range hits {
		if h.Scores.DenseRank != i+1 {
			t.Errorf("hit %d has rank %d", i, h.Scores.DenseRank)
		}
		if i > 0 && h.Scores.Dense > hits[i-1].Scores.Dense {
			t.Errorf("hit %d scores %g, the one before %g", i, h.Scores.Dense, hits[i-1].Scores.Dense)
		}
		if off := math.Abs(float64(h.Scores.Dense) - dot(q.Vector, h.Vector)); off > 0.003 {
			t.Errorf("hit %d: score %g is %g off the cosine", i, h.Scores.Dense, off)
		}
		if seen[h.Chunk.ID] {
			t.Errorf("chunk %d twice", h.Chunk.ID)
		}
		seen[h.Chunk.ID] = true
	}
}

func dot(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += float64(a[i]) * float64(b[i])
	}
	return sum
}

// nearest are the texts of the best chunks by brute force.
func nearest(docs []ingest.Encoded, q []float32, limit int, keep func(ingest.Document) bool) []string {
	type scored struct {
		text string
		cos  float64
	}
	var all []scored
	for _, d := range docs {
		for i := range d.Chunks {
			if keep(d.Document) {
				all = append(all, scored{d.Chunks[i].Text, dot(q, d.Vectors[i])})
			}
		}
	}
	slices.SortFunc(all, func(a, b scored) int { return cmp.Compare(b.cos, a.cos) })
	texts := make([]string, min(limit, len(all)))
	for i := range texts {
		texts[i] = all[i].text
	}
	return texts
}

// recall is the share of want among the hits.
func recall(hits []retrieve.Hit, want []string) float64 {
	if len(want) == 0 {
		return 1
	}
	n := 0
	for _, h := range hits {
		if slices.Contains(want, h.Chunk.Text) {
			n++
		}
	}
	return float64(n) / float64(len(want))
}

// TestFilteredAndDeep: on both ways through the index and past it, a query gets as
// many rows as match up to its limit, all of them of the filter's documents, and
// the right ones. The corpus has 20 chunks of a rare language among 3,000, and
// another collection shares the index.
func TestFilteredAndDeep(t *testing.T) {
	pool := testenv.Database(t)
	rng := rand.New(rand.NewPCG(1, 2))
	var docs []ingest.Encoded
	for i := range 150 {
		docs = append(docs, document(rng, fmt.Sprintf("common/%03d", i), 20, map[string]any{"lang": "en"}))
	}
	for i := range 20 {
		docs = append(docs, document(rng, fmt.Sprintf("rare/%03d", i), 1, map[string]any{"lang": []string{"ko", "x"}}))
	}
	for _, d := range docs {
		put(t, pool, "many", d)
	}
	for i := range 20 {
		put(t, pool, "beside", document(rng, fmt.Sprintf("beside/%d", i), 20, nil))
	}
	buildIndex(t, pool, "many")
	filters := []struct {
		name string
		f    retrieve.Filters
		keep func(ingest.Document) bool
	}{
		{"none", retrieve.Filters{}, func(ingest.Document) bool { return true }},
		{"rare by metadata", retrieve.Filters{Metadata: map[string][]string{"lang": {"ko"}}}, isRare},
		{"rare by path", retrieve.Filters{PathPrefix: "rare/"}, isRare},
		{"common", retrieve.Filters{PathPrefix: "common/", Metadata: map[string][]string{"lang": {"de", "en"}}}, func(d ingest.Document) bool { return !isRare(d) }},
		{"one document", retrieve.Filters{PathPrefix: "rare/007"}, func(d ingest.Document) bool { return d.Path == "rare/007" }},
		{"nothing", retrieve.Filters{PathPrefix: "rare/", Metadata: map[string][]string{"lang": {"en"}}}, func(ingest.Document) bool { return false }},
	}
	for name, cfg := range map[string]Config{"exact": {}, "index": {ExactBelow: 1}, "index beyond 100": {ExactBelow: 100}} {
		r := New(pool, tenant, cfg)
		for _, tt := range filters {
			for _, limit := range []int{1, 20, 60} {
				var sum float64
				const queries = 5
				for range queries {
					q := unit(rng)
					want := nearest(docs, q, limit, tt.keep)
					hits := search(t, r, retrieve.Query{Vector: q, Collections: []string{"many"}, Limit: limit, Filters: tt.f})
					if len(hits) != len(want) {
						t.Errorf("%s, %s: %d hits, want %d", name, tt.name, len(hits), len(want))
					}
					sum += recall(hits, want)
				}
				if got := sum / queries; got < 0.95 {
					t.Errorf("%s, %s, limit %d: recall %.2f", name, tt.name, limit, got)
				}
			}
		}
	}
}

func isRare(d ingest.Document) bool { return strings.HasPrefix(d.Path, "rare/") }

// TestFilterIsLiteral: no character in a prefix, key or value is a wildcard or ends
// the text.
func TestFilterIsLiteral(t *testing.T) {
	pool := testenv.Database(t)
	rng := rand.New(rand.NewPCG(5, 6))
	odd := []string{"100%", "a_b", `back\slash`, "it's", `"quoted"`, "{a,b}", "[1]", "$1", "@limit", "한글", "*", "null"}
	for _, s := range append(odd, "100x", "axb", "plain") {
		put(t, pool, "default", document(rng, s+"/doc", 1, map[string]any{s: s, "key": s, "list": []string{"other", s}}))
	}
	r := New(pool, tenant, Config{})
	q := retrieve.Query{Vector: unit(rng), Collections: []string{"default"}, Limit: 50}
	for _, s := range odd {
		for name, f := range map[string]retrieve.Filters{
			"prefix": {PathPrefix: s},
			"key":    {Metadata: map[string][]string{s: {s}}},
			"value":  {Metadata: map[string][]string{"key": {s}}},
			"list":   {Metadata: map[string][]string{"list": {s}}},
			"all":    {PathPrefix: s + "/", Metadata: map[string][]string{"key": {"nothing", s}, "list": {s}}},
		} {
			q.Filters = f
			hits := search(t, r, q)
			if len(hits) != 1 || hits[0].Document.Path != s+"/doc" {
				t.Errorf("%s %q: %d hits", name, s, len(hits))
			}
		}
	}
	for name, f := range map[string]retrieve.Filters{
		"zero byte":     {PathPrefix: "a\x00"},
		"invalid UTF-8": {Metadata: map[string][]string{"key": {"\xff"}}},
		"no values":     {Metadata: map[string][]string{"key": {}}},
		"other case":    {PathPrefix: "PLAIN"},
		"part of value": {Metadata: map[string][]string{"key": {"pla"}}},
	} {
		q.Filters = f
		if hits := search(t, r, q); len(hits) != 0 {
			t.Errorf("%s: %d hits, want none", name, len(hits))
		}
	}
}

func TestErrors(t *testing.T) {
	pool := testenv.Database(t)
	rng := rand.New(rand.NewPCG(7, 8))
	put(t, pool, "default", document(rng, "a", 2, nil))
	put(t, pool, "empty", document(rng, "a", 0, nil))
	good := retrieve.Query{Vector: unit(rng), Model: testModel, Collections: []string{"default"}, Limit: 5}
	change := func(f func(q *retrieve.Query)) retrieve.Query {
		q := good
		f(&q)
		return q
	}
	for _, tt := range []struct {
		name string
		q    retrieve.Query
		is   error
		says string
	}{
		{"unknown collection", change(func(q *retrieve.Query) { q.Collections = []string{"nope"} }), retrieve.ErrNoCollection, `"nope"`},
		{"no text for a name", change(func(q *retrieve.Query) { q.Collections = []string{"a\x00"} }), retrieve.ErrNoCollection, ""},
		{"other model", change(func(q *retrieve.Query) { q.Model = "newer" }), retrieve.ErrModel, `"default" is embedded by "test-model", not by "newer"`},
		{"other dimension", change(func(q *retrieve.Query) { q.Vector = q.Vector[:5] }), ErrQuery, "5 dimensions"},
		{"limit 0", change(func(q *retrieve.Query) { q.Limit = 0 }), ErrQuery, "limit 0"},
		{"negative limit", change(func(q *retrieve.Query) { q.Limit = -3 }), ErrQuery, "limit -3"},
	} {
		hits, err := New(pool, tenant, Config{}).Retrieve(t.Context(), tt.q)
		if !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v, want %v saying %q", tt.name, err, tt.is, tt.says)
		}
		if hits != nil {
			t.Errorf("%s: hits beside an error", tt.name)
		}
	}
	if _, err := New(pool, "other tenant", Config{}).Retrieve(t.Context(), good); !errors.Is(err, retrieve.ErrNoCollection) {
		t.Errorf("another tenant: %v, want ErrNoCollection", err)
	}
	empty := change(func(q *retrieve.Query) { q.Collections = []string{"empty"} })
	if hits, err := New(pool, tenant, Config{}).Retrieve(t.Context(), empty); err != nil || len(hits) != 0 {
		t.Errorf("an empty collection: %d hits, %v", len(hits), err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := New(pool, tenant, Config{}).Retrieve(ctx, good); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestUnavailable(t *testing.T) {
	cfg, err := store.PoolConfig("postgres:///ragd?user=ragd&host=" + t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	_, err = New(pool, tenant, Config{}).Retrieve(t.Context(), retrieve.Query{Vector: []float32{1}, Collections: []string{"c"}, Limit: 1})
	if !errors.Is(err, retrieve.ErrUnavailable) {
		t.Errorf("%v, want ErrUnavailable", err)
	}
}

// TestChangedAndDeleted: what was replaced or deleted is found no more, on either way.
func TestChangedAndDeleted(t *testing.T) {
	pool := testenv.Database(t)
	rng := rand.New(rand.NewPCG(11, 12))
	fish, plant := document(rng, "pet", 2, nil), document(rng, "pet", 1, nil)
	other := document(rng, "other", 3, nil)
	put(t, pool, "default", other)
	buildIndex(t, pool, "default")
	expect := func(q []float32, texts ...string) {
		t.Helper()
		for _, below := range []int{1, 1000} {
			hits := search(t, New(pool, tenant, Config{ExactBelow: below}), retrieve.Query{Vector: q, Collections: []string{"default"}, Limit: 10})
			var got []string
			for _, h := range hits {
				got = append(got, h.Document.Path)
			}
			slices.Sort(got)
			if !slices.Equal(got, texts) {
				t.Errorf("found %v, want %v", got, texts)
			}
		}
	}
	put(t, pool, "default", fish)
	expect(fish.Vectors[0], "other", "other", "other", "pet", "pet")
	put(t, pool, "default", plant)
	expect(fish.Vectors[0], "other", "other", "other", "pet")
	if _, err := store.New(pool, tenant, lexical.Analyzer{}).Delete(t.Context(), "default", []string{"pet"}); err != nil {
		t.Fatal(err)
	}
	expect(plant.Vectors[0], "other", "other", "other")
}

func TestHit(t *testing.T) {
	pool := testenv.Database(t)
	e := document(rand.New(rand.NewPCG(13, 14)), "docs/한글.md", 1, nil)
	put(t, pool, "default", e)
	hits := search(t, New(pool, tenant, Config{}), retrieve.Query{Vector: e.Vectors[0], Collections: []string{"default"}, Limit: 3})
	if len(hits) != 1 {
		t.Fatalf("%d hits", len(hits))
	}
	h, c := hits[0], e.Chunks[0]
	if h.Chunk.Text != c.Text || h.Chunk.Page != 1 || h.Chunk.ID == 0 || !slices.Equal(h.Chunk.Sentences, c.Sentences) || !slices.Equal(h.Chunk.Heading, c.Heading) {
		t.Errorf("chunk %+v", h.Chunk)
	}
	if h.Document.Path != e.Document.Path || h.Document.Title != e.Document.Title || h.Document.ID == 0 {
		t.Errorf("document %+v", h.Document)
	}
	if len(h.SentenceVectors) != 1 || math.Abs(dot(h.SentenceVectors[0], e.Vectors[0])-1) > 0.01 || h.Scores.Dense < 0.999 {
		t.Errorf("scores %+v, %d sentence vectors", h.Scores, len(h.SentenceVectors))
	}
}
