package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"ragd/ingest"
)

// activeLock, xor the collection, is the advisory lock on which model a collection
// has: writers of vectors share it, who changes the model holds it alone.
// "ragdactv" in ASCII.
const activeLock int64 = 0x7261676461637476

// claim makes model the collection's where it has none yet, or none but of
// documents that are gone.
func (s *Store) claim(ctx context.Context, collection int64, model int32) error {
	var active *int32
	err := Read(ctx, s.pool, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, "SELECT model_id FROM ragd.collections WHERE id = $1", collection).Scan(&active)
	})
	if err != nil || (active != nil && *active == model) {
		return err
	}
	return write(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock($1)", activeLock^collection); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, `
			UPDATE ragd.collections c SET model_id = $2
			WHERE id = $1 AND NOT EXISTS (
				SELECT FROM ragd.collection_models m WHERE m.collection_id = $1 AND m.model_id = c.model_id AND m.chunks > 0)`, collection, model)
		return err
	})
}

// holdModel makes sure until the end of the transaction that the collection's
// model is the given one; else the error is an *ingest.ModelError.
func holdModel(ctx context.Context, tx pgx.Tx, collection int64, model int32) error {
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock_shared($1)", activeLock^collection); err != nil {
		return err
	}
	var active int32
	e := &ingest.ModelError{}
	err := tx.QueryRow(ctx, `
		SELECT c.name, coalesce(c.model_id, 0), coalesce(have.name, ''), want.name
		FROM ragd.collections c LEFT JOIN ragd.models have ON have.id = c.model_id JOIN ragd.models want ON want.id = $2
		WHERE c.id = $1`, collection, model).Scan(&e.Collection, &active, &e.Have, &e.Want)
	if err != nil {
		return err
	}
	if active != model {
		return e
	}
	return nil
}

// Model returns the embedding model of a collection, "" for one that is unknown or
// has no vectors.
func (s *Store) Model(ctx context.Context, collection string) (name string, err error) {
	err = Read(ctx, s.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			SELECT m.name
			FROM ragd.collections c
			JOIN ragd.models m ON m.id = c.model_id
			JOIN ragd.collection_models n ON n.collection_id = c.id AND n.model_id = m.id AND n.chunks > 0
			WHERE c.tenant = $1 AND c.name = $2`, s.tenant, clean(collection))
		if err != nil {
			return err
		}
		names, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if len(names) > 0 {
			name = names[0]
		}
		return err
	})
	return name, err
}
