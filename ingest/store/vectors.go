package store

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/pgvector/pgvector-go"

	"ragd/ingest"
)

// vectorRow is what a model makes of a chunk.
type vectorRow struct {
	chunk, document int64
	vector          []float32
	sentences       [][]float32    // nil when they are not encoded
	states          *ingest.States // nil when they are not kept
}

// copyVectors loads vectors with COPY.
func copyVectors(ctx context.Context, tx pgx.Tx, collection int64, model int32, list []vectorRow) error {
	_, err := tx.CopyFrom(ctx, pgx.Identifier{"ragd", "vectors"},
		[]string{"chunk_id", "document_id", "collection_id", "model_id", "embedding"},
		pgx.CopyFromSlice(len(list), func(i int) ([]any, error) {
			r := &list[i]
			return []any{r.chunk, r.document, collection, model, pgvector.NewHalfVector(r.vector)}, nil
		}))
	if err != nil {
		return err
	}
	var encoded [][]any
	for _, r := range list {
		if r.sentences != nil {
			encoded = append(encoded, []any{r.chunk, model, encodeSentences(r.sentences)})
		}
	}
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"ragd", "sentence_vectors"},
		[]string{"chunk_id", "model_id", "vectors"}, pgx.CopyFromRows(encoded))
	if err != nil {
		return err
	}
	return copyStates(ctx, tx, collection, model, list)
}
