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
	Path       string
	Title      string
	// Model is the embedding model of the vectors.
	Model  string
	Vector []float32
	// Sentences holds one vector for each of Chunk.Sentences, or is nil when
	// they were not encoded.
	Sentences [][]float32
}

// Load reads chunks by id inside a transaction of Read, so that what it returns
// fits what the same transaction searched. Ids that do not exist are left out.
func Load(ctx context.Context, tx pgx.Tx, ids []int64) (map[int64]Row, error) {
	rows, err := tx.Query(ctx, `
		SELECT c.id, c.ordinal, c.heading, c.text, c.start_byte, c.end_byte, c.page, c.tokens,
		       c.sentence_spans, c.sentence_vectors, d.id, d.path, d.title, m.name, v.embedding
		FROM ragd.chunks c
		JOIN ragd.documents d ON d.id = c.document_id
		JOIN ragd.vectors v ON v.chunk_id = c.id
		JOIN ragd.models m ON m.id = v.model_id
		WHERE c.id = ANY($1)`, ids)
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
	var vec pgvector.HalfVector
	c := &r.Chunk
	err := rows.Scan(&c.ID, &c.Ordinal, &c.Heading, &c.Text, &c.Start, &c.End, &c.Page, &c.Tokens,
		&spans, &blob, &r.DocumentID, &r.Path, &r.Title, &r.Model, &vec)
	if err != nil {
		return Row{}, err
	}
	c.Sentences = unpackSpans(spans)
	r.Vector = vec.Slice()
	r.Sentences, err = decodeSentences(blob, len(c.Sentences), len(r.Vector))
	if err != nil {
		return Row{}, fmt.Errorf("chunk %d: %w", c.ID, err)
	}
	return r, nil
}
