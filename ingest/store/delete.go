package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Delete implements ingest.Store. Paths that are not there are passed over.
func (s *Store) Delete(ctx context.Context, collection string, paths []string) (int, error) {
	paths = cleanAll(paths)
	var n int
	var id int64 // the collection's
	err := write(ctx, s.pool, func(tx pgx.Tx) error {
		// Rows are locked in id order: two deletions of the same set in different
		// orders wait for each other, not crosswise.
		rows, err := tx.Query(ctx, `
			SELECT d.id, c.id
			FROM ragd.documents d JOIN ragd.collections c ON c.id = d.collection_id
			WHERE c.tenant = $1 AND c.name = $2 AND d.path = ANY($3)
			ORDER BY d.id
			FOR UPDATE OF d`, s.tenant, collection, paths)
		if err != nil {
			return err
		}
		ids, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (document int64, err error) {
			err = row.Scan(&document, &id)
			return document, err
		})
		if err != nil {
			return err
		}
		n, err = deleteDocuments(ctx, tx, ids)
		return err
	})
	if err == nil && n > 0 {
		err = s.compact(ctx, id)
	}
	if err != nil {
		return 0, fmt.Errorf("delete from collection %q: %w", collection, err)
	}
	return n, nil
}

func deleteDocuments(ctx context.Context, tx pgx.Tx, ids []int64) (int, error) {
	if len(ids) == 0 {
		return 0, nil
	}
	d, err := removeChunks(ctx, tx, ids)
	if err != nil {
		return 0, err
	}
	if _, err := tx.Exec(ctx, "DELETE FROM ragd.documents WHERE id = ANY($1)", ids); err != nil {
		return 0, err
	}
	return len(ids), d.apply(ctx, tx)
}
