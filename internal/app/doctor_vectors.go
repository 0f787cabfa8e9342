package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/pgvector/pgvector-go"

	"ragd/ingest"
	"ragd/ingest/store"
	"ragd/internal/config"
	"ragd/internal/localpg"
	"ragd/migrations"
	"ragd/retrieve"
	"ragd/retrieve/vector"
)

const (
	// leastRecall is the share of the true nearest chunks that an index must find.
	leastRecall = 0.98
	// recallAt is how many nearest chunks are compared.
	recallAt = 10
	// recallSample bounds the stored vectors that are asked for, recallWork the
	// vectors that the exact searches of one collection compare, and recallTime
	// the whole check.
	recallSample = 50
	recallWork   = 20_000_000
	recallTime   = time.Minute
)

// embedded is a collection with vectors.
type embedded struct {
	id           int64
	tenant, name string
	model        string
	chunks       int64
	indexed      bool
}

// checkVectors holds the collections to the configured embedding model and their
// indexes to exact search. It says nothing where the database cannot be asked:
// that stands in another line.
func checkVectors(ctx context.Context, cfg config.Config) []Check {
	url, err := DatabaseURL(cfg)
	if errors.Is(err, localpg.ErrNotRunning) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, recallTime)
	defer cancel()
	pool, list, err := collections(ctx, url)
	if err != nil || len(list) == 0 {
		return nil
	}
	defer pool.Close()
	checks := append([]Check{checkEmbeddings(ctx, cfg, list)}, checkStates(ctx, cfg, pool, list)...)
	return append(checks, checkRecall(ctx, pool, list))
}

// collections lists those with vectors, the largest first. Those of ragd eval,
// which it embeds as each measurement needs, are left out of the list.
func collections(ctx context.Context, url string) (pool *pgxpool.Pool, list []embedded, err error) {
	c, err := store.PoolConfig(url)
	if err != nil {
		return nil, nil, err
	}
	c.MaxConns = 2
	if pool, err = pgxpool.NewWithConfig(ctx, c); err != nil {
		return nil, nil, err
	}
	defer func() {
		if err != nil {
			pool.Close()
		}
	}()
	err = pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error { return migrations.Check(ctx, conn.Conn()) })
	if err != nil {
		return pool, nil, err
	}
	rows, err := pool.Query(ctx, `
		SELECT c.id, c.tenant, c.name, m.name, n.chunks, `+store.HasIndex+`
		FROM ragd.collections c
		JOIN ragd.models m ON m.id = c.model_id
		JOIN ragd.collection_models n ON n.collection_id = c.id AND n.model_id = m.id AND n.chunks > 0
		WHERE NOT starts_with(c.name, 'eval/')
		ORDER BY n.chunks DESC, c.id`)
	if err != nil {
		return pool, nil, err
	}
	list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e embedded, err error) {
		err = row.Scan(&e.id, &e.tenant, &e.name, &e.model, &e.chunks, &e.indexed)
		return e, err
	})
	return pool, list, err
}

// checkEmbeddings compares the collections' model with the configured one, which
// is loaded for that: its name depends on what its file holds.
func checkEmbeddings(ctx context.Context, cfg config.Config, list []embedded) Check {
	c := Check{Name: "embeddings"}
	model, err := configuredModel(ctx, cfg)
	if err != nil {
		c.Problem = err.Error()
		return c
	}
	if model == "" {
		c.Found = "not compared: the embedding model is not here"
		return c
	}
	var wrong []string
	for _, e := range list {
		if e.model != model {
			wrong = append(wrong, (&ingest.ModelError{Collection: e.name, Have: e.model, Want: model}).Error())
		}
	}
	c.Found = fmt.Sprintf("%d of %d collections by %s", len(list)-len(wrong), len(list), model)
	c.Problem = strings.Join(wrong, "; ")
	return c
}

// configuredModel names the configured embedding model, "" where it is not here.
func configuredModel(ctx context.Context, cfg config.Config) (name string, err error) {
	a := &App{cfg: cfg, log: slog.New(slog.DiscardHandler)}
	a.cfg.Inference.Device = "cpu"
	if a.home, err = home(cfg); err != nil {
		return "", err
	}
	if _, here := findModel(a.home, cfg.Models.Embedding); !here {
		return "", nil
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	if err := a.startThreads(); err != nil {
		return "", err
	}
	if err := a.openEmbedder(ctx); err != nil {
		return "", err
	}
	return a.embed.Model(), nil
}

// checkRecall compares what the indexes find with the true nearest chunks, the
// stored vectors being the questions. It ends early when its time is up.
func checkRecall(ctx context.Context, pool *pgxpool.Pool, list []embedded) Check {
	c := Check{Name: "index recall"}
	var found, low []string
	for _, e := range list {
		if !e.indexed {
			continue
		}
		recall, asked, err := indexRecall(ctx, pool, e)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			c.Problem = fmt.Sprintf("collection %q: %v", e.name, err)
			return c
		}
		if asked == 0 {
			continue
		}
		found = append(found, fmt.Sprintf("%.3f at %d in %q, of %d questions", recall, recallAt, e.name, asked))
		if recall < leastRecall {
			low = append(low, fmt.Sprintf("%q finds less than %g of the nearest chunks: REINDEX INDEX CONCURRENTLY ragd.%s, or raise retrieve.exact_below",
				e.name, leastRecall, indexOf(ctx, pool, e)))
		}
	}
	if len(found) == 0 {
		c.Found = "no index to compare: searches are exact"
		return c
	}
	c.Found, c.Problem = strings.Join(found, "; "), strings.Join(low, "; ")
	return c
}

func indexOf(ctx context.Context, pool *pgxpool.Pool, e embedded) string {
	var model int32
	if err := pool.QueryRow(ctx, "SELECT model_id FROM ragd.collections WHERE id = $1", e.id).Scan(&model); err != nil {
		return "vectors_hnsw_…"
	}
	return store.IndexName(e.id, model)
}

// indexRecall asks for the neighbours of a sample of a collection's vectors, by
// the index and exactly.
func indexRecall(ctx context.Context, pool *pgxpool.Pool, e embedded) (recall float64, asked int, err error) {
	sample, err := storedVectors(ctx, pool, e)
	if err != nil {
		return 0, 0, err
	}
	index := vector.New(pool, e.tenant, vector.Config{ExactBelow: 1})
	exact := vector.New(pool, e.tenant, vector.Config{ExactBelow: 1 << 30})
	sum := 0.0
	for _, v := range sample {
		q := retrieve.Query{Collections: []string{e.name}, Model: e.model, Vector: v, Limit: recallAt + 1}
		near, err := index.Retrieve(ctx, q)
		if err != nil {
			return average(sum, asked), asked, err
		}
		want, err := exact.Retrieve(ctx, q)
		if err != nil {
			return average(sum, asked), asked, err
		}
		sum += share(near, want)
		asked++
	}
	return average(sum, asked), asked, nil
}

func average(sum float64, n int) float64 { return sum / float64(max(n, 1)) }

// tie is the difference under which two cosines of half-precision vectors count
// as the same.
const tie = 1e-5

// share is the part of the nearest that an index found: hits at least as near as
// the last of the exact ones. The question itself, which lies nearest, is not counted.
func share(near, want []retrieve.Hit) float64 {
	if len(want) < 2 {
		return 1
	}
	last := want[len(want)-1].Scores.Dense - tie
	n := 0
	for _, h := range near {
		if h.Scores.Dense >= last {
			n++
		}
	}
	return float64(max(min(n, len(want))-1, 0)) / float64(len(want)-1)
}

// storedVectors takes a sample that is the same every time.
func storedVectors(ctx context.Context, pool *pgxpool.Pool, e embedded) ([][]float32, error) {
	n := max(min(recallSample, recallWork/e.chunks), 1)
	rows, err := pool.Query(ctx, `
		SELECT v.embedding FROM ragd.vectors v JOIN ragd.collections c ON c.id = v.collection_id AND c.model_id = v.model_id
		WHERE c.id = $1 ORDER BY hashint8(v.chunk_id), v.chunk_id LIMIT $2`, e.id, n)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) ([]float32, error) {
		var v pgvector.HalfVector
		err := row.Scan(&v)
		return v.Slice(), err
	})
}
