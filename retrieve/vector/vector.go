// Package vector finds the chunks whose embeddings lie nearest to a question's.
//
// A search is exact when few chunks come into question: the collections are small or
// the filters leave few. Else it walks the HNSW indexes of the largest, each of one
// collection and model, which pgvector filters after the fact; a walk goes on until
// enough rows passed (iterative scan), and if the index gives up before, the exact
// search answers. So fewer rows than asked mean that fewer match.
package vector

import (
	"context"
	"errors"
	"fmt"

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
	// (about 20 ms at 384 dimensions; of more dimensions, fewer); 1 means never but
	// when there is no index or the index gives up.
	ExactBelow int
	// EfSearch is the least number of candidates that a walk of the index keeps
	// (hnsw.ef_search, up to 1,000). Default 200; more is slower and finds more.
	EfSearch int
}

// indexDim is the dimension for which ExactBelow is meant.
const indexDim = 384

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
// an unknown collection, retrieve.ErrModel when one of them is embedded by another
// model than the query's, and retrieve.ErrUnavailable when the database cannot be
// reached. Empty collections have no hits. Everything is read from one state of
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
		return nil, fmt.Errorf("dense search in %q: %w", q.Collections, err)
	}
	return hits, nil
}

func (r *Retriever) retrieve(ctx context.Context, tx pgx.Tx, q retrieve.Query) ([]retrieve.Hit, error) {
	parts, err := r.open(ctx, tx, q)
	if err != nil || len(parts) == 0 {
		return nil, err
	}
	where, ok := filter.New(q.Filters)
	if !ok {
		return nil, nil
	}
	found, err := r.search(ctx, tx, parts, where, q)
	if err != nil {
		return nil, err
	}
	return load(ctx, tx, q.Model, found)
}

// read wraps store.Read with this stage's own error.
func (r *Retriever) read(ctx context.Context, fn func(pgx.Tx) error) error {
	err := store.Read(ctx, r.pool, fn)
	if errors.Is(err, store.ErrUnavailable) {
		return fmt.Errorf("%w: %w", retrieve.ErrUnavailable, err)
	}
	return err
}

// part is a collection that is searched, with its vectors of the query's model.
type part struct {
	collection int64
	model      int32
	dim        int
	chunks     int64 // that come into question
	indexed    bool
}

// open looks up the query's collections and holds them to its model. Those without
// vectors are left out.
func (r *Retriever) open(ctx context.Context, tx pgx.Tx, q retrieve.Query) ([]part, error) {
	ids, err := filter.Collections(ctx, tx, r.tenant, q.Collections)
	if err != nil {
		return nil, err
	}
	rows, err := tx.Query(ctx, `
		SELECT c.id, m.id, m.dim, n.chunks, `+store.HasIndex+`, c.name, m.name
		FROM ragd.collections c
		JOIN ragd.models m ON m.id = c.model_id
		JOIN ragd.collection_models n ON n.collection_id = c.id AND n.model_id = m.id AND n.chunks > 0
		WHERE c.id = ANY ($1) ORDER BY n.chunks DESC, c.id`, ids)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (p part, err error) {
		var collection, model string
		if err := row.Scan(&p.collection, &p.model, &p.dim, &p.chunks, &p.indexed, &collection, &model); err != nil {
			return p, err
		}
		switch {
		case model != q.Model:
			return p, &retrieve.ModelError{Collection: collection, Have: model, Want: q.Model}
		case len(q.Vector) != p.dim:
			return p, fmt.Errorf("%w: vector of %d dimensions, model %q has %d", ErrQuery, len(q.Vector), model, p.dim)
		}
		return p, nil
	})
}

// load turns what a search found into hits, in its order.
func load(ctx context.Context, tx pgx.Tx, model string, found []neighbour) ([]retrieve.Hit, error) {
	if len(found) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(found))
	for i, n := range found {
		ids[i] = n.chunk
	}
	rows, err := store.Load(ctx, tx, model, ids)
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
			Document:        retrieve.Document{ID: row.DocumentID, Collection: row.Collection, Path: row.Path, Title: row.Title},
			Vector:          row.Vector,
			SentenceVectors: row.Sentences,
			Scores:          retrieve.Scores{Dense: float32(1 - n.distance), DenseRank: i + 1},
		}
	}
	return hits, nil
}
