package store

import (
	"context"

	"github.com/jackc/pgx/v5"

	"ragd/ingest/postings"
)

// addPostings puts the terms of a document's new chunks into the lexical index.
// A document without a term has no entry.
func (w *writer) addPostings(ctx context.Context, tx pgx.Tx, chunks []int64) error {
	terms := postings.EncodeDocument(chunks, w.terms)
	if terms == nil {
		return nil
	}
	_, err := tx.Exec(ctx, `
		INSERT INTO ragd.lexical_fresh (document_id, collection_id, chunks, terms) VALUES ($1, $2, $3, $4)`,
		w.document, w.collection, len(chunks), terms)
	return err
}

// removePostings takes documents out of the lexical index before their chunks are
// deleted: out of the fresh rows, or, where a merge came first, by marking their
// chunks dead. A merge that is under way holds the fresh rows that it takes, so
// the first statement waits for it and then finds them gone.
func removePostings(ctx context.Context, tx pgx.Tx, documents []int64) error {
	rows, err := tx.Query(ctx, "DELETE FROM ragd.lexical_fresh WHERE document_id = ANY($1) RETURNING document_id", documents)
	if err != nil {
		return err
	}
	fresh, err := pgx.CollectRows(rows, pgx.RowTo[int64])
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `
		INSERT INTO ragd.lexical_dead (collection_id, chunk_id)
		SELECT d.collection_id, c.id
		FROM ragd.chunks c JOIN ragd.documents d ON d.id = c.document_id
		WHERE c.document_id = ANY($1) AND NOT c.document_id = ANY($2) AND c.terms > 0`, documents, fresh)
	return err
}
