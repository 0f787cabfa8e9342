package store

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// delta collects how a transaction changes the counters of collections.
type delta struct {
	words   map[int64]size
	vectors map[modelKey]int64
}

func newDelta() delta { return delta{words: map[int64]size{}, vectors: map[modelKey]int64{}} }

// modelKey names the vectors of a model in a collection.
type modelKey struct {
	collection int64
	model      int32
}

// size is a number of chunks and of their terms.
type size struct{ chunks, terms int64 }

func (d delta) addWords(collection int64, s size) {
	old := d.words[collection]
	d.words[collection] = size{old.chunks + s.chunks, old.terms + s.terms}
}

func (d delta) addVectors(collection int64, model int32, n int64) {
	d.vectors[modelKey{collection, model}] += n
}

// apply writes the changes, in key order so that two writers cannot wait for
// each other, and last in the transaction so that the rows are held briefly.
func (d delta) apply(ctx context.Context, tx pgx.Tx) error {
	if err := d.applyVectors(ctx, tx); err != nil {
		return err
	}
	return d.applyWords(ctx, tx)
}

// applyVectors counts vectors. greatest, here and below: a proposed row must pass
// the table's checks before it meets the row that is there.
func (d delta) applyVectors(ctx context.Context, tx pgx.Tx) error {
	var collections, chunks []int64
	var models []int32
	for k, n := range d.vectors {
		if n != 0 {
			collections, models, chunks = append(collections, k.collection), append(models, k.model), append(chunks, n)
		}
	}
	if len(chunks) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO ragd.collection_models AS m (collection_id, model_id, chunks)
		SELECT c, m, greatest(n, 0)
		FROM unnest($1::bigint[], $2::integer[], $3::bigint[]) AS u (c, m, n)
		ORDER BY c, m
		ON CONFLICT (collection_id, model_id) DO UPDATE SET chunks = m.chunks + (
			SELECT n FROM unnest($1::bigint[], $2::integer[], $3::bigint[]) AS u (c, m, n)
			WHERE u.c = excluded.collection_id AND u.m = excluded.model_id)`, collections, models, chunks)
	return err
}

func (d delta) applyWords(ctx context.Context, tx pgx.Tx) error {
	var collections, chunks, terms []int64
	for c, n := range d.words {
		if n != (size{}) {
			collections, chunks, terms = append(collections, c), append(chunks, n.chunks), append(terms, n.terms)
		}
	}
	if len(chunks) == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO ragd.lexical_counts AS l (collection_id, chunks, terms)
		SELECT c, greatest(n, 0), greatest(t, 0)
		FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS u (c, n, t)
		ORDER BY c
		ON CONFLICT (collection_id) DO UPDATE SET (chunks, terms) = (
			SELECT l.chunks + n, l.terms + t
			FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS u (c, n, t)
			WHERE u.c = excluded.collection_id)`, collections, chunks, terms)
	return err
}

// removeChunks deletes the chunks and vectors of documents, takes them out of the
// lexical index and returns the change of the counters.
func removeChunks(ctx context.Context, tx pgx.Tx, documents []int64) (delta, error) {
	d := newDelta()
	if err := removeVectors(ctx, tx, d, documents, 0); err != nil {
		return d, err
	}
	if err := removePostings(ctx, tx, documents); err != nil {
		return d, err
	}
	rows, err := tx.Query(ctx, `
		WITH gone AS (DELETE FROM ragd.chunks WHERE document_id = ANY($1) RETURNING document_id, terms)
		SELECT d.collection_id, count(*), sum(g.terms) FROM gone g JOIN ragd.documents d ON d.id = g.document_id
		GROUP BY 1`, documents)
	if err != nil {
		return d, err
	}
	var collection int64
	var n size
	_, err = pgx.ForEachRow(rows, []any{&collection, &n.chunks, &n.terms}, func() error {
		d.addWords(collection, size{-n.chunks, -n.terms})
		return nil
	})
	return d, err
}

// removeVectors deletes the vectors of documents but those of the model to keep,
// 0 for none.
func removeVectors(ctx context.Context, tx pgx.Tx, d delta, documents []int64, keep int32) error {
	_, err := tx.Exec(ctx, `
		DELETE FROM ragd.sentence_vectors s USING ragd.chunks c
		WHERE c.id = s.chunk_id AND c.document_id = ANY($1) AND s.model_id <> $2`, documents, keep)
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		DELETE FROM ragd.token_states s USING ragd.chunks c
		WHERE c.id = s.chunk_id AND c.document_id = ANY($1) AND s.model_id <> $2`, documents, keep)
	if err != nil {
		return err
	}
	rows, err := tx.Query(ctx, `
		WITH gone AS (DELETE FROM ragd.vectors WHERE document_id = ANY($1) AND model_id <> $2 RETURNING collection_id, model_id)
		SELECT collection_id, model_id, count(*) FROM gone GROUP BY 1, 2`, documents, keep)
	if err != nil {
		return err
	}
	var collection, n int64
	var model int32
	_, err = pgx.ForEachRow(rows, []any{&collection, &model, &n}, func() error {
		d.addVectors(collection, model, -n)
		return nil
	})
	return err
}
