package app

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"ragd/ingest"
	"ragd/ingest/store"
	"ragd/internal/tenant"
	"ragd/retrieve"
	"ragd/retrieve/lexical"
)

// scatter stores n chunks with random vectors of unit length.
func scatter(t *testing.T, s *store.Store, collection, model string, n, dim int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(7, 7))
	const perDocument = 250
	for d := 0; d*perDocument < n; d++ {
		e := ingest.Encoded{Document: ingest.Document{Path: fmt.Sprint(d), Title: "t", Hash: fmt.Sprint(d), Type: "text/plain", Charset: "utf-8"}}
		for i := range min(perDocument, n-d*perDocument) {
			v, sum := make([]float32, dim), 0.0
			for k := range v {
				v[k] = float32(rng.NormFloat64())
				sum += float64(v[k]) * float64(v[k])
			}
			for k := range v {
				v[k] /= float32(math.Sqrt(sum))
			}
			e.Chunks = append(e.Chunks, ingest.Chunk{Ordinal: i, Text: "x", End: 1, Tokens: 1})
			e.Vectors = append(e.Vectors, v)
		}
		if _, err := s.Put(t.Context(), collection, model, "r", e); err != nil {
			t.Fatal(err)
		}
	}
}

func checkOf(t *testing.T, list []Check, name string) Check {
	t.Helper()
	for _, c := range list {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no check %q in %+v", name, list)
	return Check{}
}

// Doctor tells a collection of another model, a sound index and one that loses
// neighbours.
func TestDoctorLooksAtVectors(t *testing.T) {
	cfg := settings(t)
	pool, err := pgxpool.New(t.Context(), cfg.Database.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if list := checkVectors(t.Context(), cfg); list != nil {
		t.Errorf("an empty database: %+v", list)
	}
	own, err := configuredModel(t.Context(), cfg)
	if err != nil || own == "" {
		t.Fatalf("model %q: %v", own, err)
	}
	s := store.New(pool, tenant.Default, lexical.Analyzer{})
	scatter(t, s, "small", own, 20, 16)
	list := checkVectors(t.Context(), cfg)
	if c := checkOf(t, list, "embeddings"); c.Problem != "" || !strings.Contains(c.Found, "1 of 1") {
		t.Errorf("%+v", c)
	}
	if c := checkOf(t, list, "index recall"); c.Problem != "" || !strings.Contains(c.Found, "exact") {
		t.Errorf("%+v", c)
	}

	scatter(t, s, "large", "other-model@1", 3000, 64)
	if err := s.BuildIndex(t.Context(), "large"); err != nil {
		t.Fatal(err)
	}
	list = checkVectors(t.Context(), cfg)
	if c := checkOf(t, list, "embeddings"); !strings.Contains(c.Problem, `"large" is embedded by "other-model@1"`) || !strings.Contains(c.Problem, "ragd reembed") {
		t.Errorf("%+v", c)
	}
	if c := checkOf(t, list, "index recall"); c.Problem != "" || !strings.Contains(c.Found, `in "large", of 50 questions`) {
		t.Errorf("%+v", c)
	}

	spoil(t, pool)
	if c := checkOf(t, checkVectors(t.Context(), cfg), "index recall"); !strings.Contains(c.Problem, "REINDEX INDEX CONCURRENTLY ragd.vectors_hnsw_") {
		t.Errorf("%+v", c)
	}
}

// spoil makes the collection's index anew with next to no edges.
func spoil(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	var definition, name string
	err := pool.QueryRow(t.Context(), "SELECT indexdef, indexname FROM pg_indexes WHERE indexname LIKE 'vectors_hnsw_%'").Scan(&definition, &name)
	if err != nil {
		t.Fatal(err)
	}
	weak, ok := strings.CutSuffix(definition, definition[strings.Index(definition, " WHERE "):])
	if !ok {
		t.Fatal(definition)
	}
	weak += " WITH (m = 2, ef_construction = 4)" + definition[strings.Index(definition, " WHERE "):]
	for _, stmt := range []string{"DROP INDEX ragd." + name, weak} {
		if _, err := pool.Exec(t.Context(), stmt); err != nil {
			t.Fatalf("%s: %v", stmt, err)
		}
	}
}

func TestShareOfTheNearest(t *testing.T) {
	hits := func(cosines ...float32) (out []retrieve.Hit) {
		for _, c := range cosines {
			out = append(out, retrieve.Hit{Scores: retrieve.Scores{Dense: c}})
		}
		return out
	}
	want := hits(1, .9, .8, .7, .6)
	for name, c := range map[string]struct {
		near []retrieve.Hit
		want float64
	}{
		"all":          {hits(1, .9, .8, .7, .6), 1},
		"a tie":        {hits(1, .9, .8, .7, .6000001), 1},
		"one is lost":  {hits(1, .9, .8, .7, .5), .75},
		"itself alone": {hits(1), 0},
		"nothing":      {nil, 0},
	} {
		if got := share(c.near, want); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %g, want %g", name, got, c.want)
		}
	}
	if share(nil, hits(1)) != 1 {
		t.Error("a lonely chunk has no neighbours to lose")
	}
}
