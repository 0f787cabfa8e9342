package store_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"ragd/ingest"
	"ragd/ingest/store"
	"ragd/internal/testenv"
	"ragd/retrieve/lexical"
)

const (
	writers   = 6
	documents = 21
)

func corpus(version string) []ingest.Encoded {
	docs := make([]ingest.Encoded, documents)
	for i := range docs {
		texts := make([]string, 2+i%4)
		for j := range texts {
			texts[j] = fmt.Sprintf("%s document %d chunk %d", version, i, j)
		}
		docs[i] = encoded(fmt.Sprintf("doc-%02d.md", i), texts...)
	}
	return docs
}

// TestConcurrentPut: several runs put the same documents at once, each in an
// order of its own, into an empty database. Nobody sees an error, each document is
// written once.
func TestConcurrentPut(t *testing.T) {
	pool := testenv.Database(t)
	var written atomic.Int32
	g, ctx := errgroup.WithContext(t.Context())
	for w := range writers {
		g.Go(func() error {
			s := store.New(pool, tenant, lexical.Analyzer{})
			docs := corpus("v1")
			rng := rand.New(rand.NewPCG(uint64(w), 7))
			rng.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
			for _, d := range docs {
				changed, err := s.Put(ctx, "default", model, recipe, d)
				if err != nil {
					return err
				}
				if changed {
					written.Add(1)
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if n := written.Load(); n != documents {
		t.Errorf("%d documents written, want each of %d once", n, documents)
	}
	checkCounters(t, pool)
}

// TestConcurrentChanges mixes replacing with deleting, several at a time.
func TestConcurrentChanges(t *testing.T) {
	pool := testenv.Database(t)
	g, ctx := errgroup.WithContext(t.Context())
	for w := range writers {
		g.Go(func() error {
			s := store.New(pool, tenant, lexical.Analyzer{})
			rng := rand.New(rand.NewPCG(uint64(w), 9))
			for round := range 3 {
				docs := corpus(fmt.Sprintf("v%d-%d", w, round))
				rng.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
				var paths []string
				for i, d := range docs {
					if _, err := s.Put(ctx, "default", model, recipe, d); err != nil {
						return err
					}
					if i%3 == 0 {
						paths = append(paths, d.Document.Path)
					}
				}
				if _, err := s.Delete(ctx, "default", paths); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	checkCounters(t, pool)
}

// TestReadersSeeWholeDocuments: while a document is replaced and deleted over and
// over, a reader finds all chunks of one version or none.
func TestReadersSeeWholeDocuments(t *testing.T) {
	pool := testenv.Database(t)
	s := store.New(pool, tenant, lexical.Analyzer{})
	versions := []ingest.Encoded{
		encoded("pet.md", "fish 1", "fish 2", "fish 3"),
		encoded("pet.md", "plant 1", "plant 2", "plant 3", "plant 4", "plant 5"),
	}
	ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	var seen atomic.Int32
	for range 3 {
		wg.Go(func() {
			for ctx.Err() == nil {
				if kind, err := readVersion(ctx, pool); err != nil && ctx.Err() == nil {
					t.Error(err)
					return
				} else if kind != "" {
					seen.Add(1)
				}
			}
		})
	}
	for round := range 40 {
		put(t, s, "default", versions[round%2])
		if round%5 == 4 {
			if _, err := s.Delete(t.Context(), "default", []string{"pet.md"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if seen.Load() == 0 {
		t.Error("no reader saw a document")
	}
}

// readVersion returns which version is there, "" for none, and an error for a mixture.
func readVersion(ctx context.Context, pool *pgxpool.Pool) (string, error) {
	rows, err := chunksOf(ctx, pool, "pet.md")
	if err != nil || len(rows) == 0 {
		return "", err
	}
	kind, _, _ := strings.Cut(rows[0].Chunk.Text, " ")
	want := map[string]int{"fish": 3, "plant": 5}[kind]
	for _, r := range rows {
		if !strings.HasPrefix(r.Chunk.Text, kind) {
			return "", fmt.Errorf("%s and %q in one read", kind, r.Chunk.Text)
		}
	}
	if len(rows) != want {
		return "", fmt.Errorf("%d chunks of %s, want %d", len(rows), kind, want)
	}
	return kind, nil
}
