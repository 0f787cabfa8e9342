package hybrid_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"ragd/ingest"
	"ragd/ingest/store"
	"ragd/internal/testenv"
	"ragd/retrieve"
	"ragd/retrieve/fuse"
	"ragd/retrieve/hybrid"
	"ragd/retrieve/lexical"
	"ragd/retrieve/vector"
)

const (
	tenant = "acme"
	model  = "m"
)

// at is the unit vector of an angle: the cosine of two is that of their difference.
func at(angle float64) []float32 {
	return []float32{float32(math.Cos(angle)), float32(math.Sin(angle)), 0}
}

// rig is a hybrid retriever over documents of one chunk each.
type rig struct {
	*testing.T
	pool  *pgxpool.Pool
	store *store.Store
	*hybrid.Retriever
}

func newRig(t *testing.T, cfg hybrid.Config) *rig {
	pool := testenv.Database(t)
	r := &rig{T: t, pool: pool, store: store.New(pool, tenant, lexical.Analyzer{})}
	r.Retriever = r.over(vector.New(pool, tenant, vector.Config{}), lexical.New(pool, tenant, lexical.Analyzer{}), cfg)
	return r
}

func (r *rig) over(dense retrieve.Retriever, words hybrid.Words, cfg hybrid.Config) *hybrid.Retriever {
	h, err := hybrid.New(r.pool, dense, words, cfg)
	if err != nil {
		r.Fatal(err)
	}
	return h
}

func (r *rig) put(path, text string, vec []float32) {
	r.Helper()
	e := ingest.Encoded{
		Document: ingest.Document{Path: path, Title: path, Hash: text, Type: "text/plain", Charset: "utf-8"},
		Chunks:   []ingest.Chunk{{Text: text, End: len(text), Tokens: 1}},
		Vectors:  [][]float32{vec},
	}
	if _, err := r.store.Put(r.Context(), "default", model, "r", e); err != nil {
		r.Fatal(err)
	}
}

func query(text string, vec []float32, limit int) retrieve.Query {
	return retrieve.Query{Text: text, Vector: vec, Model: model, Collections: []string{"default"}, Limit: limit}
}

func (r *rig) ask(q retrieve.Query) []retrieve.Hit {
	r.Helper()
	hits, err := r.Retrieve(r.Context(), q)
	if err != nil {
		r.Fatal(err)
	}
	return hits
}

func paths(hits []retrieve.Hit) string {
	var out []string
	for _, h := range hits {
		out = append(out, h.Document.Path)
	}
	return strings.Join(out, " ")
}

// Each side lists two of four chunks; every hit still has both scores.
func TestBothScoresAreExact(t *testing.T) {
	r := newRig(t, hybrid.Config{Candidates: 2, Method: fuse.Convex, DenseWeight: 0.5})
	r.put("near", "nothing to see", at(0.1))
	r.put("both", "the relay clicks", at(0.2))
	r.put("words", "relay relay relay", at(0.9))
	r.put("far", "silence", at(1.5))
	q := query("relay", at(0), 2)
	hits := r.ask(q)
	if paths(hits) != "near words" { // the best of each side
		t.Errorf("found %s", paths(hits))
	}
	q.Limit = 3
	for _, h := range r.ask(q) {
		angle := map[string]float64{"near": 0.1, "both": 0.2, "words": 0.9, "far": 1.5}[h.Document.Path]
		if got := float64(h.Scores.Dense); math.Abs(got-math.Cos(angle)) > 1e-3 {
			t.Errorf("%s: cosine %g, want %g", h.Document.Path, got, math.Cos(angle))
		}
		if word := strings.Contains(h.Chunk.Text, "relay"); word != (h.Scores.Lexical > 0) || word != (h.Scores.LexicalRank > 0) {
			t.Errorf("%s: %+v", h.Document.Path, h.Scores)
		}
		if h.Vector == nil {
			t.Errorf("%s comes without its vector", h.Document.Path)
		}
	}
}

// An exact identifier comes first even where the dense side does not see it.
func TestIdentifierBeatsMeaning(t *testing.T) {
	r := newRig(t, hybrid.DefaultConfig())
	for i, code := range []string{"4042", "4402", "4420"} {
		r.put("err-"+code, "ERR-"+code+" stops the film.", at(0.1*float64(3-i)))
	}
	for _, q := range []string{"ERR-4402", "오류 ERR-4402가 뜨면?", "err 4402"} {
		if got := r.ask(query(q, at(0), 3))[0].Document.Path; got != "err-4402" {
			t.Errorf("%q: %s first", q, got)
		}
	}
}

// Without a word to search for, the order is the dense one.
func TestNoWords(t *testing.T) {
	r := newRig(t, hybrid.DefaultConfig())
	r.put("b", "pump", at(0.2))
	r.put("a", "valve", at(0.1))
	r.put("c", "relay", at(0.3))
	for _, text := range []string{"", "?!", "who is it"} {
		if got := paths(r.ask(query(text, at(0), 5))); got != "a b c" {
			t.Errorf("%q: %s", text, got)
		}
	}
}

func TestFiltersHoldOnBothSides(t *testing.T) {
	r := newRig(t, hybrid.DefaultConfig())
	for i := range 6 {
		r.put(fmt.Sprintf("%c/%d", 'a'+i%2, i), "the pump", at(0.1*float64(i)))
	}
	q := query("pump", at(0), 10)
	q.Filters.PathPrefix = "b/"
	if got := paths(r.ask(q)); got != "b/1 b/3 b/5" {
		t.Errorf("found %s", got)
	}
	q.Filters.PathPrefix = "none/"
	if hits := r.ask(q); len(hits) != 0 {
		t.Errorf("found %s", paths(hits))
	}
}

// stale answers from before a document was replaced.
type stale struct{ hits []retrieve.Hit }

func (s stale) Retrieve(context.Context, retrieve.Query) ([]retrieve.Hit, error) { return s.hits, nil }

// A side that read the database before a change cannot bring back what is gone.
func TestReplacedTextDoesNotAnswer(t *testing.T) {
	r := newRig(t, hybrid.DefaultConfig())
	r.put("fish", "the fish is called NACRE", at(0.1))
	q := query("fish", at(0), 5)
	before := r.ask(q)
	r.put("fish", "the fish is called MARBLE", at(0.1))
	h := r.over(stale{before}, lexical.New(r.pool, tenant, lexical.Analyzer{}), hybrid.DefaultConfig())
	hits, err := h.Retrieve(t.Context(), q)
	if err != nil || len(hits) != 1 || !strings.Contains(hits[0].Chunk.Text, "MARBLE") {
		t.Errorf("%v, %v", hits, err)
	}
	if n, err := r.store.Delete(t.Context(), "default", []string{"fish"}); err != nil || n != 1 {
		t.Fatal(n, err)
	}
	if hits, err := h.Retrieve(t.Context(), q); err != nil || len(hits) != 0 {
		t.Errorf("after deletion: %v, %v", hits, err)
	}
}

var errSide = errors.New("side is down")

type broken struct{}

func (broken) Retrieve(context.Context, retrieve.Query) ([]retrieve.Hit, error) { return nil, errSide }

func (broken) Search(context.Context, retrieve.Query) (*lexical.Matches, error) { return nil, errSide }

// A side that fails fails the search, and every part that began ends once.
func TestErrorsAndObservation(t *testing.T) {
	r := newRig(t, hybrid.DefaultConfig())
	r.put("a", "pump", at(0.1))
	dense, words := vector.New(r.pool, tenant, vector.Config{}), lexical.New(r.pool, tenant, lexical.Analyzer{})
	for name, c := range map[string]struct {
		retriever *hybrid.Retriever
		err       error
		parts     []retrieve.Part
	}{
		"all well":   {r.Retriever, nil, []retrieve.Part{retrieve.Dense, retrieve.Fuse, retrieve.Lexical}},
		"dense down": {r.over(broken{}, words, hybrid.DefaultConfig()), errSide, []retrieve.Part{retrieve.Dense, retrieve.Lexical}},
		"words down": {r.over(dense, broken{}, hybrid.DefaultConfig()), errSide, []retrieve.Part{retrieve.Dense, retrieve.Lexical}},
	} {
		var mu sync.Mutex
		began, ended := []retrieve.Part{}, 0
		q := query("pump", at(0), 3)
		q.Observe = func(ctx context.Context, p retrieve.Part) (context.Context, func(error)) {
			mu.Lock()
			defer mu.Unlock()
			began = append(began, p)
			return ctx, func(error) {
				mu.Lock()
				defer mu.Unlock()
				ended++
			}
		}
		if _, err := c.retriever.Retrieve(t.Context(), q); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
		slices.Sort(began)
		if !slices.Equal(began, c.parts) || ended != len(began) {
			t.Errorf("%s: parts %v, %d ended", name, began, ended)
		}
	}
}

func TestConfigBounds(t *testing.T) {
	for _, cfg := range []hybrid.Config{
		{}, {Candidates: 1, Method: "sum"}, {Candidates: 1, Method: fuse.Convex, DenseWeight: 2},
	} {
		if _, err := hybrid.New(nil, nil, nil, cfg); err == nil {
			t.Errorf("%+v was accepted", cfg)
		}
	}
}
