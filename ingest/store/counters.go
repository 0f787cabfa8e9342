package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// delta collects how a transaction changes ragd.collection_models.
type delta map[deltaKey]int64

type deltaKey struct {
	collection int64
	model      int32
}

func (d delta) add(collection int64, model int32, n int) {
	d[deltaKey{collection, model}] += int64(n)
}

// apply writes the changes, in key order so that two writers cannot wait for
// each other, and last in the transaction so that the rows are held briefly.
func (d delta) apply(ctx context.Context, tx pgx.Tx) error {
	var collections, counts []int64
	var models []int32
	for k, n := range d {
		if n != 0 {
			collections, models, counts = append(collections, k.collection), append(models, k.model), append(counts, n)
		}
	}
	if len(counts) == 0 {
		return nil
	}
	// greatest: a proposed row must pass the table's check before it meets the
	// row that is there.
	_, err := tx.Exec(ctx, `
		INSERT INTO ragd.collection_models AS m (collection_id, model_id, chunks)
		SELECT c, m, greatest(n, 0)
		FROM unnest($1::bigint[], $2::integer[], $3::bigint[]) AS t (c, m, n)
		ORDER BY c, m
		ON CONFLICT (collection_id, model_id) DO UPDATE SET chunks = m.chunks + (
			SELECT n FROM unnest($1::bigint[], $2::integer[], $3::bigint[]) AS t (c, m, n)
			WHERE t.c = excluded.collection_id AND t.m = excluded.model_id)`, collections, models, counts)
	return err
}

// removeChunks deletes the chunks and vectors of documents and returns the change
// of the counters.
func removeChunks(ctx context.Context, tx pgx.Tx, documents []int64) (delta, error) {
	rows, err := tx.Query(ctx, `
		WITH gone AS (DELETE FROM ragd.vectors WHERE document_id = ANY($1) RETURNING collection_id, model_id)
		SELECT collection_id, model_id, count(*) FROM gone GROUP BY 1, 2`, documents)
	if err != nil {
		return nil, err
	}
	d := delta{}
	var collection int64
	var model int32
	var n int
	if _, err := pgx.ForEachRow(rows, []any{&collection, &model, &n}, func() error {
		d.add(collection, model, -n)
		return nil
	}); err != nil {
		return nil, err
	}
	_, err = tx.Exec(ctx, "DELETE FROM ragd.chunks WHERE document_id = ANY($1)", documents)
	return d, err
}
