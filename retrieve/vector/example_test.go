package vector_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"ragd/retrieve"
	"ragd/retrieve/vector"
)

func ExampleRetriever_Retrieve() {
	ask := func(ctx context.Context, pool *pgxpool.Pool, embedder retrieve.Embedder, question string) error {
		v, _, err := embedder.EmbedQuery(ctx, question)
		if err != nil {
			return err
		}
		hits, err := vector.New(pool, "default", vector.Config{}).Retrieve(ctx, retrieve.Query{
			Vector: v, Model: embedder.Model(), Collections: []string{"handbook"}, Limit: 20,
			Filters: retrieve.Filters{PathPrefix: "policies/", Metadata: map[string][]string{"lang": {"en", "ko"}}},
		})
		if errors.Is(err, retrieve.ErrNoCollection) {
			return errors.New("nothing was ingested yet")
		}
		for _, h := range hits {
			fmt.Printf("%.3f %s p. %d\n", h.Scores.Dense, h.Document.Path, h.Chunk.Page)
		}
		return err
	}
	_ = ask
}
