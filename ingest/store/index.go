package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// The vectors of a collection get an HNSW index when there are many: under that,
// comparing all is fast, and writing is faster without. What counts is chunks ×
// dimensions, chunks of fewer than indexDim dimensions counting as of that.
const (
	indexFrom = 10_000
	indexDim  = 384
	// indexLock is the advisory lock of the one who builds: "ragdindx" in ASCII.
	indexLock int64 = 0x72616764696e6478
)

// IndexName names the index over a collection's vectors of a model.
func IndexName(collection int64, model int32) string {
	return fmt.Sprintf("vectors_hnsw_%d_%d", collection, model)
}

// HasIndex is a condition in SQL: the index over the vectors of c.id and m.id is
// there and complete.
const HasIndex = `EXISTS (
	SELECT FROM pg_index x
	WHERE x.indexrelid = to_regclass(format('ragd.vectors_hnsw_%s_%s', c.id, m.id)) AND x.indisvalid)`

// ensureIndex builds the index of a collection that has become large. It is false
// when another builds at this time: the next writer will see to it.
func (s *Store) ensureIndex(ctx context.Context, collection int64, model int32) (settled bool, err error) {
	var due bool
	err = Read(ctx, s.pool, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `
			SELECT n.chunks * greatest(m.dim, $3) >= $3::bigint * $4 AND NOT `+HasIndex+`
			FROM ragd.collections c JOIN ragd.models m ON m.id = $2
			JOIN ragd.collection_models n ON n.collection_id = c.id AND n.model_id = m.id
			WHERE c.id = $1`, collection, model, indexDim, indexFrom).Scan(&due)
	})
	if errors.Is(err, pgx.ErrNoRows) || (err == nil && !due) {
		return true, nil
	}
	if err == nil {
		settled, err = s.buildIndex(ctx, collection, model)
	}
	if err != nil {
		return false, fmt.Errorf("done, but the index over the vectors could not be built: %w", err)
	}
	return settled, nil
}

// BuildIndex builds the index of a collection's vectors, whatever their number.
func (s *Store) BuildIndex(ctx context.Context, collection string) error {
	var id int64
	var model int32
	err := Read(ctx, s.pool, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT id, model_id FROM ragd.collections WHERE tenant = $1 AND name = $2 AND model_id IS NOT NULL",
			s.tenant, collection).Scan(&id, &model)
	})
	if err == nil {
		_, err = s.buildIndex(ctx, id, model)
	}
	if err != nil {
		return fmt.Errorf("build the index over the vectors of collection %q: %w", collection, err)
	}
	return nil
}

// buildIndex builds concurrently: writers and readers go on. One that was cut off
// before is dropped first. It is false when another builds.
func (s *Store) buildIndex(ctx context.Context, collection int64, model int32) (done bool, err error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Release()
	unlock, ok, err := lockSession(ctx, conn, indexLock)
	if err != nil || !ok {
		return false, err
	}
	defer unlock()
	var dim int
	var there bool
	err = conn.QueryRow(ctx, "SELECT m.dim, "+HasIndex+" FROM ragd.collections c, ragd.models m WHERE c.id = $1 AND m.id = $2",
		collection, model).Scan(&dim, &there)
	if err != nil || there {
		return there, err
	}
	if err := dropIndex(ctx, conn, collection, model); err != nil {
		return false, err
	}
	// Collection, model and dimension are literals, for the planner must prove that
	// the index fits.
	_, err = conn.Exec(ctx, fmt.Sprintf(`
		CREATE INDEX CONCURRENTLY %s ON ragd.vectors
		USING hnsw ((embedding::halfvec(%d)) halfvec_cosine_ops) WHERE collection_id = %d AND model_id = %d`,
		IndexName(collection, model), dim, collection, model))
	return err == nil, err
}

func dropIndex(ctx context.Context, conn *pgxpool.Conn, collection int64, model int32) error {
	_, err := conn.Exec(ctx, "DROP INDEX CONCURRENTLY IF EXISTS ragd."+IndexName(collection, model))
	return err
}

// lockSession takes an advisory lock for as long as the connection lives or until
// unlock; ok is false when another has it.
func lockSession(ctx context.Context, conn *pgxpool.Conn, key int64) (unlock func(), ok bool, err error) {
	if err := conn.QueryRow(ctx, "SELECT pg_try_advisory_lock($1)", key).Scan(&ok); err != nil || !ok {
		return nil, false, err
	}
	return unlocker(ctx, conn, key), true, nil
}

// unlocker gives a lock back, or ends the connection with it: the pool must not get
// one that still holds it.
func unlocker(ctx context.Context, conn *pgxpool.Conn, key int64) func() {
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
		defer cancel()
		if _, err := conn.Exec(ctx, "SELECT pg_advisory_unlock($1)", key); err != nil {
			_ = conn.Conn().Close(ctx)
		}
	}
}
