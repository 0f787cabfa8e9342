package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// delta collects how a transaction changes ragd.collection_models.
type delta map[deltaKey]size

type deltaKey struct {
	collection int64
	model      int32
}

// size is a number of chunks and of their terms.
type size struct{ chunks, terms int64 }

func (d delta) add(collection int64, model int32, s size) {
	k := deltaKey{collection, model}
	d[k] = size{d[k].chunks + s.chunks, d[k].terms + s.terms}
}

// apply writes the changes, in key order so that two writers cannot wait for
// each other, and last in the transaction so that the rows are held briefly.
func (d delta) apply(ctx context.Context, tx pgx.Tx) error {
	var collections, chunks, terms []int64
	var models []int32
	for k, n := range d {
		if n != (size{}) {
			collections, models = append(collections, k.collection), append(models, k.model)
			chunks, terms = append(chunks, n.chunks), append(terms, n.terms)
		}
	}
	if len(chunks) == 0 {
		return nil
	}
	// greatest: a proposed row must pass the table's checks before it meets the
	// row that is there.
	_, err := tx.Exec(ctx, `
		INSERT INTO ragd.collection_models AS m (collection_id, model_id, chunks, terms)
		SELECT c, m, greatest(n, 0), greatest(t, 0)
		FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[]) AS u (c, m, n, t)
		ORDER BY c, m
		ON CONFLICT (collection_id, model_id) DO UPDATE SET (chunks, terms) = (
			SELECT m.chunks + n, m.terms + t
			FROM unnest($1::bigint[], $2::integer[], $3::bigint[], $4::bigint[]) AS u (c, m, n, t)
			WHERE u.c = excluded.collection_id AND u.m = excluded.model_id)`, collections, models, chunks, terms)
	return err
}

// removeChunks deletes the chunks and vectors of documents, takes them out of the
// lexical index and returns the change of the counters.
func removeChunks(ctx context.Context, tx pgx.Tx, documents []int64) (delta, error) {
	rows, err := tx.Query(ctx, `
		WITH gone AS (DELETE FROM ragd.vectors WHERE document_id = ANY($1) RETURNING chunk_id, collection_id, model_id)
		SELECT g.collection_id, g.model_id, count(*), sum(c.terms)
		FROM gone g JOIN ragd.chunks c ON c.id = g.chunk_id
		GROUP BY 1, 2`, documents)
	if err != nil {
		return nil, err
	}
	d := delta{}
	var collection int64
	var model int32
	var n size
	if _, err := pgx.ForEachRow(rows, []any{&collection, &model, &n.chunks, &n.terms}, func() error {
		d.add(collection, model, size{-n.chunks, -n.terms})
		return nil
	}); err != nil {
		return nil, err
	}
	if err := removePostings(ctx, tx, documents); err != nil {
		return nil, err
	}
	_, err = tx.Exec(ctx, "DELETE FROM ragd.chunks WHERE document_id = ANY($1)", documents)
	return d, err
}
