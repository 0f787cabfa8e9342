// Package vector finds the chunks whose embeddings lie nearest to a question's.
//
// A search is exact when few chunks come into question: the collection is small or
// the filters leave few. Else it walks the model's HNSW index, which pgvector
// filters after the fact; the walk goes on until enough rows passed (iterative
// scan), and if the index gives up before, the exact search answers. So fewer rows
// than asked mean that fewer match.
package vector

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ragd/ingest/store"
	"ragd/retrieve"
	"ragd/retrieve/internal/filter"
)

// ErrQuery says that the query itself is at fault.
var ErrQuery = errors.New("invalid vector query")

// Config tunes the search; zero values take the defaults.
type Config struct {
	// ExactBelow: with fewer chunks in question the search is exact. Default 20,000
	// (about 20 ms at 384 dimensions); 1 means never but when the index gives up.
	ExactBelow int
	// EfSearch is the least number of candidates that a walk of the index keeps
	// (hnsw.ef_search, up to 1,000). Default 200; more is slower and finds more.
	EfSearch int
}

// Retriever implements retrieve.Retriever over the dense vectors of one tenant.
// Its hits carry the cosine in Scores.Dense and the place in Scores.DenseRank.
type Retriever struct {
	pool   *pgxpool.Pool
	tenant string
	cfg    Config
}

var _ retrieve.Retriever = (*Retriever)(nil)

// New returns a retriever for a tenant. The database must be migrated.
func New(pool *pgxpool.Pool, tenant string, cfg Config) *Retriever {
	if cfg.ExactBelow <= 0 {
		cfg.ExactBelow = 20_000
	}
	if cfg.EfSearch <= 0 {
		cfg.EfSearch = 200
	}
	return &Retriever{pool: pool, tenant: tenant, cfg: cfg}
}

// Retrieve implements retrieve.Retriever. It returns retrieve.ErrNoCollection for
// an unknown collection, retrieve.ErrModel when no chunk of the collection was encoded by
// the query's model, and retrieve.ErrUnavailable when the database cannot be
// reached. An empty collection has no hits. Everything is read from one state of
// the database.
func (r *Retriever) Retrieve(ctx context.Context, q retrieve.Query) ([]retrieve.Hit, error) {
	if q.Limit < 1 {
		return nil, fmt.Errorf("%w: limit %d, at least 1 is needed", ErrQuery, q.Limit)
	}
	var hits []retrieve.Hit
	err := r.read(ctx, func(tx pgx.Tx) (err error) {
		hits, err = r.retrieve(ctx, tx, q)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("dense search in collection %q: %w", q.Collection, err)
	}
	return hits, nil
}

func (r *Retriever) retrieve(ctx context.Context, tx pgx.Tx, q retrieve.Query) ([]retrieve.Hit, error) {
	models, err := r.collectionModels(ctx, tx, q.Collection)
	if err != nil || len(models) == 0 {
		return nil, err
	}
	m, err := pick(models, q)
	if err != nil {
		return nil, err
	}
	where, ok := filter.New(q.Filters)
	if !ok {
		return nil, nil
	}
	found, err := r.search(ctx, tx, m, where, q)
	if err != nil {
		return nil, err
	}
	return load(ctx, tx, found)
}

// read wraps store.Read with this stage's own error.
func (r *Retriever) read(ctx context.Context, fn func(pgx.Tx) error) error {
	err := store.Read(ctx, r.pool, fn)
	if errors.Is(err, store.ErrUnavailable) {
		return fmt.Errorf("%w: %w", retrieve.ErrUnavailable, err)
	}
	return err
}

// EmbeddingModel returns the model that most of the collection's chunks were
// encoded by, "" for an empty collection.
func (r *Retriever) EmbeddingModel(ctx context.Context, collection string) (string, error) {
	var name string
	err := r.read(ctx, func(tx pgx.Tx) error {
		models, err := r.collectionModels(ctx, tx, collection)
		if err == nil && len(models) > 0 {
			name = models[0].name
		}
		return err
	})
	if err != nil {
		return "", fmt.Errorf("embedding model of collection %q: %w", collection, err)
	}
	return name, nil
}

// model is an embedding model within a collection.
type model struct {
	collection int64
	id         int32
	name       string
	dim        int
	chunks     int64
}

// collectionModels lists the models of a collection, the most used first.
func (r *Retriever) collectionModels(ctx context.Context, tx pgx.Tx, collection string) ([]model, error) {
	if !filter.Storable(collection) {
		return nil, retrieve.ErrNoCollection
	}
	rows, err := tx.Query(ctx, `
		SELECT c.id, m.id, m.name, m.dim, cm.chunks
		FROM ragd.collections c
		LEFT JOIN ragd.collection_models cm ON cm.collection_id = c.id AND cm.chunks > 0
		LEFT JOIN ragd.models m ON m.id = cm.model_id
		WHERE c.tenant = $1 AND c.name = $2
		ORDER BY cm.chunks DESC, m.id`, r.tenant, collection)
	if err != nil {
		return nil, err
	}
	list, err := pgx.CollectRows(rows, scanModel)
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return nil, retrieve.ErrNoCollection
	}
	if list[0].chunks == 0 { // the collection alone, without a model
		return nil, nil
	}
	return list, nil
}

func scanModel(row pgx.CollectableRow) (model, error) {
	var m model
	var id, dim *int32
	var name *string
	var chunks *int64
	if err := row.Scan(&m.collection, &id, &name, &dim, &chunks); err != nil || id == nil {
		return m, err
	}
	m.id, m.name, m.dim, m.chunks = *id, *name, int(*dim), *chunks
	return m, nil
}

// pick finds the query's model among those of the collection.
func pick(models []model, q retrieve.Query) (model, error) {
	names := make([]string, len(models))
	for i, m := range models {
		if m.name != q.Model {
			names[i] = fmt.Sprintf("%q", m.name)
			continue
		}
		if len(q.Vector) != m.dim {
			return model{}, fmt.Errorf("%w: vector of %d dimensions, model %q has %d", ErrQuery, len(q.Vector), m.name, m.dim)
		}
		return m, nil
	}
	return model{}, fmt.Errorf("%w: the question was encoded by %q, the collection by %s; ingest it again with this model",
		retrieve.ErrModel, q.Model, strings.Join(names, ", "))
}

// load turns what a search found into hits, in its order.
func load(ctx context.Context, tx pgx.Tx, found []neighbour) ([]retrieve.Hit, error) {
	if len(found) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(found))
	for i, n := range found {
		ids[i] = n.chunk
	}
	rows, err := store.Load(ctx, tx, ids)
	if err != nil {
		return nil, err
	}
	hits := make([]retrieve.Hit, len(found))
	for i, n := range found {
		row, ok := rows[n.chunk]
		if !ok {
			return nil, fmt.Errorf("chunk %d has a vector but no text", n.chunk)
		}
		hits[i] = retrieve.Hit{
			Chunk:           row.Chunk,
			Document:        retrieve.Document{ID: row.DocumentID, Path: row.Path, Title: row.Title},
			Vector:          row.Vector,
			SentenceVectors: row.Sentences,
			Scores:          retrieve.Scores{Dense: float32(1 - n.distance), DenseRank: i + 1},
		}
	}
	return hits, nil
}
