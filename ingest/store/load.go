package store

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/pgvector/pgvector-go"

	"ragd/ingest"
)

// Row is a stored chunk with what a search result needs.
type Row struct {
	Chunk      ingest.Chunk
	DocumentID int64
	Collection string
	Path       string
	Title      string
	// Vector is nil when the chunk has none of the model.
	Vector []float32
	// Sentences holds one vector for each of Chunk.Sentences, or is nil when
	// they were not encoded.
	Sentences [][]float32
}

// Load reads chunks by id, with their vectors of a model, inside a transaction of
// Read, so that what it returns fits what the same transaction searched. Ids that
// do not exist are left out.
func Load(ctx context.Context, tx pgx.Tx, model string, ids []int64) (map[int64]Row, error) {
	rows, err := tx.Query(ctx, `
		SELECT c.id, c.ordinal, c.heading, c.text, c.start_byte, c.end_byte, c.page, c.tokens,
		       c.sentence_spans, s.vectors, d.id, l.name, d.path, d.title, v.embedding
		FROM ragd.chunks c
		JOIN ragd.documents d ON d.id = c.document_id
		JOIN ragd.collections l ON l.id = d.collection_id
		LEFT JOIN ragd.models m ON m.name = $2
		LEFT JOIN ragd.vectors v ON v.chunk_id = c.id AND v.model_id = m.id
		LEFT JOIN ragd.sentence_vectors s ON s.chunk_id = c.id AND s.model_id = m.id
		WHERE c.id = ANY($1)`, ids, model)
	if err != nil {
		return nil, fmt.Errorf("load chunks: %w", err)
	}
	defer rows.Close()
	out := make(map[int64]Row, len(ids))
	for rows.Next() {
		r, err := scanRow(rows)
		if err != nil {
			return nil, fmt.Errorf("load chunks: %w", err)
		}
		out[r.Chunk.ID] = r
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("load chunks: %w", err)
	}
	return out, nil
}

func scanRow(rows pgx.Rows) (Row, error) {
	var r Row
	var spans []int32
	var blob []byte
	var vec *pgvector.HalfVector
	c := &r.Chunk
	err := rows.Scan(&c.ID, &c.Ordinal, &c.Heading, &c.Text, &c.Start, &c.End, &c.Page, &c.Tokens,
		&spans, &blob, &r.DocumentID, &r.Collection, &r.Path, &r.Title, &vec)
	if err != nil {
		return Row{}, err
	}
	c.Sentences = unpackSpans(spans)
	if vec == nil {
		return r, nil
	}
	r.Vector = vec.Slice()
	r.Sentences, err = decodeSentences(blob, len(c.Sentences), len(r.Vector))
	if err != nil {
		return Row{}, fmt.Errorf("chunk %d: %w", c.ID, err)
	}
	return r, nil
}
