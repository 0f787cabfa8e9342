package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// modelLock is the advisory lock under which models are registered: "ragdmodl" in ASCII.
const modelLock int64 = 0x726167646d6f646c

// maxDim is what an HNSW index over halfvec can hold (pgvector README).
const maxDim = 4000

// ensureCollection returns the id of a collection, which is made if missing.
func (s *Store) ensureCollection(ctx context.Context, name string) (id int64, err error) {
	if name == "" || name != clean(name) || len(name) > maxPath {
		return 0, fmt.Errorf("%w: collection name %.60q is empty, too long or not valid text", ErrInvalid, name)
	}
	err = write(ctx, s.pool, func(tx pgx.Tx) error {
		const find = "SELECT id FROM ragd.collections WHERE tenant = $1 AND name = $2"
		err := tx.QueryRow(ctx, find, s.tenant, name).Scan(&id)
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		_, err = tx.Exec(ctx, "INSERT INTO ragd.collections (tenant, name) VALUES ($1, $2) ON CONFLICT DO NOTHING", s.tenant, name)
		if err != nil {
			return err
		}
		return tx.QueryRow(ctx, find, s.tenant, name).Scan(&id)
	})
	return id, err
}

// ensureModel returns the id of an embedding model, which is registered at its
// first use.
func (s *Store) ensureModel(ctx context.Context, name string, dim int) (id int32, err error) {
	if name == "" || name != clean(name) || len(name) > maxPath {
		return 0, fmt.Errorf("%w: model name %.60q is empty, too long or not valid text", ErrInvalid, name)
	}
	if dim > maxDim {
		return 0, fmt.Errorf("%w: vectors of %d dimensions, at most %d can be indexed", ErrInvalid, dim, maxDim)
	}
	err = write(ctx, s.pool, func(tx pgx.Tx) error {
		id, err = findModel(ctx, tx, name, dim)
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", modelLock); err != nil {
			return err
		}
		id, err = findModel(ctx, tx, name, dim)
		if !errors.Is(err, pgx.ErrNoRows) {
			return err
		}
		return tx.QueryRow(ctx, "INSERT INTO ragd.models (name, dim) VALUES ($1, $2) RETURNING id", name, dim).Scan(&id)
	})
	return id, err
}

func findModel(ctx context.Context, tx pgx.Tx, name string, dim int) (id int32, err error) {
	var have int
	if err := tx.QueryRow(ctx, "SELECT id, dim FROM ragd.models WHERE name = $1", name).Scan(&id, &have); err != nil {
		return 0, err
	}
	if have != dim {
		return 0, fmt.Errorf("%w: model %q has vectors of %d dimensions in the database, these have %d", ErrInvalid, name, have, dim)
	}
	return id, nil
}
