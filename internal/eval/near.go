package eval

import (
	"context"
	"fmt"
	"math"

	"ragd/ingest/store"
	"ragd/retrieve/vector"
)

// nearest is how many of the nearest chunks the dense side is held to, as in the
// recall@10 of benchmarks of approximate search.
const nearest = 10

// near compares the dense side with a search that compares all vectors, and measures
// the index between them. A chunk that is as near as the last of the exact ten counts
// as one of them.
func (g *grower) near(ctx context.Context, out *Growth) (err error) {
	exact := vector.New(g.Inside.Pool, g.Inside.Tenant, vector.Config{ExactBelow: math.MaxInt32})
	found, asked := 0, 0
	var spent stopwatch
	for i := range min(grownQueries, len(g.set.Queries)) {
		q := g.query(i, &spent)
		q.Limit = g.Reranked
		list, err := g.Dense.Retrieve(ctx, q)
		if err != nil {
			return err
		}
		q.Limit = nearest
		all, err := exact.Retrieve(ctx, q)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return fmt.Errorf("no chunk of %d is near question %d", out.Chunks, i)
		}
		last := all[len(all)-1].Scores.Dense
		for _, h := range list[:min(len(all), len(list))] {
			if h.Scores.Dense >= last {
				found++
			}
		}
		asked += len(all)
		g.cfg.Progress("recall", i+1, min(grownQueries, len(g.set.Queries)))
	}
	recall := float64(found) / float64(asked)
	out.Recall = &recall
	out.VectorIndex, err = g.Inside.vectorIndex(ctx, g.collection)
	return err
}

// vectorIndex measures the index over a collection's vectors; 0 when it has none.
func (i Inside) vectorIndex(ctx context.Context, collection string) (bytes int64, err error) {
	var id int64
	var model int32
	err = i.Pool.QueryRow(ctx, "SELECT id, model_id FROM ragd.collections WHERE tenant = $1 AND name = $2", i.Tenant, collection).Scan(&id, &model)
	if err != nil {
		return 0, err
	}
	err = i.Pool.QueryRow(ctx, "SELECT coalesce(pg_relation_size(to_regclass($1)), 0)", "ragd."+store.IndexName(id, model)).Scan(&bytes)
	return bytes, err
}
