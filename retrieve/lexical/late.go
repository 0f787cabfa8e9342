package lexical

import (
	"context"
	"maps"

	"github.com/jackc/pgx/v5"

	"ragd/retrieve/internal/filter"
)

// late says that the filters leave so many chunks that only the best matches are
// held to them.
func (r *reader) late(ctx context.Context, where filter.Filter, limit int) (bool, error) {
	if where.SQL == "" || limit <= 0 {
		return false, nil
	}
	args := pgx.NamedArgs{"collections": r.collections}
	maps.Copy(args, where.Args)
	var left int64
	err := r.tx.QueryRow(ctx, `
		SELECT coalesce(sum(d.chunks), 0)::bigint FROM ragd.documents d
		WHERE d.collection_id = ANY (@collections) AND `+where.SQL, args).Scan(&left)
	return left > r.wide, err
}

// lateFactor is how many times as many matches as asked for are held to the filters
// at first, and by how much more each time that they were too few.
const lateFactor = 4

// passingTop returns the best matches that pass the filters, up to limit.
func (r *reader) passingTop(ctx context.Context, where filter.Filter, m *Matches, limit int) ([]Match, error) {
	for k := lateFactor * limit; ; k *= lateFactor {
		best := m.Top(k)
		pass, err := r.pass(ctx, where, best)
		if err != nil {
			return nil, err
		}
		top := make([]Match, 0, limit)
		for _, match := range best {
			if pass[match.Chunk] && len(top) < limit {
				top = append(top, match)
			}
		}
		if len(top) == limit || len(best) < k {
			return top, nil
		}
	}
}

func (r *reader) pass(ctx context.Context, where filter.Filter, list []Match) (map[int64]bool, error) {
	ids := make([]int64, len(list))
	for i, match := range list {
		ids[i] = match.Chunk
	}
	args := pgx.NamedArgs{"ids": ids}
	maps.Copy(args, where.Args)
	rows, err := r.tx.Query(ctx, `
		SELECT c.id FROM ragd.chunks c JOIN ragd.documents d ON d.id = c.document_id
		WHERE c.id = ANY (@ids) AND `+where.SQL, args)
	if err != nil {
		return nil, err
	}
	pass := make(map[int64]bool, len(ids))
	var id int64
	_, err = pgx.ForEachRow(rows, []any{&id}, func() error {
		pass[id] = true
		return nil
	})
	return pass, err
}
