package app

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"ragd/internal/config"
)

// checkStates says which collections hold chunks without token states where late
// interaction is to read them; nothing with another reranker.
func checkStates(ctx context.Context, cfg config.Config, pool *pgxpool.Pool, list []embedded) []Check {
	if cfg.Rerank.Scorer != config.ScoreLate {
		return nil
	}
	c := Check{Name: "token states"}
	var missing []string
	var have, all, bytes int64
	for _, e := range list {
		var n, size int64
		err := pool.QueryRow(ctx, `
			SELECT count(*), coalesce(sum(octet_length(s.states)), 0)::bigint
			FROM ragd.token_states s JOIN ragd.collections c ON c.id = s.collection_id AND c.model_id = s.model_id
			WHERE c.id = $1`, e.id).Scan(&n, &size)
		if err != nil {
			c.Problem = err.Error()
			return []Check{c}
		}
		have, all, bytes = have+n, all+e.chunks, bytes+size
		if n < e.chunks {
			missing = append(missing, fmt.Sprintf("%d of the %d chunks of %q have none and are not reranked: run ragd reembed", e.chunks-n, e.chunks, e.name))
		}
	}
	c.Found = fmt.Sprintf("of %d of %d chunks, %d KB a chunk", have, all, bytes/max(have, 1)/1000)
	c.Problem = strings.Join(missing, "; ")
	return []Check{c}
}
