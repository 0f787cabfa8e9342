package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"ragd/ingest"
)

// Neighbours returns, for each chunk, those right before and right behind it in its
// document, in the order of the document, without sentences. Chunks that do not exist
// have none.
func (s *Store) Neighbours(ctx context.Context, chunks []int64) (map[int64][]ingest.Chunk, error) {
	out := make(map[int64][]ingest.Chunk, len(chunks))
	err := Read(ctx, s.pool, func(tx pgx.Tx) error {
		clear(out)
		rows, err := tx.Query(ctx, `
			SELECT c.id, n.id, n.ordinal, n.heading, n.text, n.start_byte, n.end_byte, n.page, n.tokens
			FROM ragd.chunks c
			JOIN ragd.chunks n ON n.document_id = c.document_id AND n.ordinal IN (c.ordinal - 1, c.ordinal + 1)
			WHERE c.id = ANY($1)
			ORDER BY c.id, n.ordinal`, chunks)
		if err != nil {
			return err
		}
		var of int64
		var n ingest.Chunk
		_, err = pgx.ForEachRow(rows, []any{&of, &n.ID, &n.Ordinal, &n.Heading, &n.Text, &n.Start, &n.End, &n.Page, &n.Tokens}, func() error {
			out[of] = append(out[of], n)
			n.Heading = nil
			return nil
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("neighbours: %w", err)
	}
	return out, nil
}
