package vector

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/pgvector/pgvector-go"

	"ragd/retrieve"
	"ragd/retrieve/internal/filter"
)

// neighbour is a chunk at a cosine distance (1 − cosine) of the question.
type neighbour struct {
	chunk    int64
	distance float64
}

// search chooses the way of each part and walks it.
func (r *Retriever) search(ctx context.Context, tx pgx.Tx, parts []part, where filter.Filter, q retrieve.Query) ([]neighbour, error) {
	parts, err := countMatching(ctx, tx, parts, where)
	if err != nil || len(parts) == 0 {
		return nil, err
	}
	walked, compared := r.plan(parts)
	var found []neighbour
	for _, p := range walked {
		near, err := r.approximate(ctx, tx, p, where, q)
		if err != nil {
			return nil, err
		}
		if int64(len(near)) < min(int64(q.Limit), p.chunks) {
			compared = append(compared, p)
			continue
		}
		found = append(found, near...)
	}
	if len(compared) > 0 {
		near, err := r.exact(ctx, tx, compared, where, q)
		if err != nil {
			return nil, err
		}
		found = append(found, near...)
	}
	slices.SortFunc(found, func(a, b neighbour) int {
		return cmp.Or(cmp.Compare(a.distance, b.distance), cmp.Compare(a.chunk, b.chunk))
	})
	return found[:min(q.Limit, len(found))], nil
}

// plan says which parts are walked by their index and which are compared wholly:
// the largest are walked until few enough chunks are left to compare.
func (r *Retriever) plan(parts []part) (walked, compared []part) {
	below := int64(max(1, r.cfg.ExactBelow*indexDim/max(parts[0].dim, indexDim)))
	left := int64(0)
	for _, p := range parts {
		left += p.chunks
	}
	slices.SortStableFunc(parts, func(a, b part) int { return cmp.Compare(b.chunks, a.chunks) })
	for _, p := range parts {
		if p.indexed && left >= below {
			walked, left = append(walked, p), left-p.chunks
			continue
		}
		compared = append(compared, p)
	}
	return walked, compared
}

// countMatching sets how many chunks of each part the filters leave and drops the
// parts where they leave none.
func countMatching(ctx context.Context, tx pgx.Tx, parts []part, where filter.Filter) ([]part, error) {
	if where.SQL == "" {
		return parts, nil
	}
	args := pgx.NamedArgs{"collections": collections(parts)}
	maps.Copy(args, where.Args)
	rows, err := tx.Query(ctx, `
		SELECT d.collection_id, sum(d.chunks)::bigint
		FROM ragd.documents d
		WHERE d.collection_id = ANY (@collections) AND `+where.SQL+` GROUP BY 1`, args)
	if err != nil {
		return nil, err
	}
	left := map[int64]int64{}
	var collection, n int64
	if _, err := pgx.ForEachRow(rows, []any{&collection, &n}, func() error {
		left[collection] = n
		return nil
	}); err != nil {
		return nil, err
	}
	for i := range parts {
		parts[i].chunks = left[parts[i].collection]
	}
	return slices.DeleteFunc(parts, func(p part) bool { return p.chunks == 0 }), nil
}

func collections(parts []part) []int64 {
	ids := make([]int64, len(parts))
	for i, p := range parts {
		ids[i] = p.collection
	}
	return ids
}

// planner are the settings under which the planner has no other way to the nearest
// than the index, with a look-up of each document.
var planner = []string{"enable_seqscan", "enable_bitmapscan", "enable_sort", "enable_hashjoin", "enable_mergejoin"}

// approximate walks the HNSW index of a part.
func (r *Retriever) approximate(ctx context.Context, tx pgx.Tx, p part, where filter.Filter, q retrieve.Query) ([]neighbour, error) {
	if err := r.setWalk(ctx, tx, q); err != nil {
		return nil, err
	}
	near, err := query(ctx, tx, indexSQL(p, where), []part{p}, where, q)
	if err != nil {
		return nil, err
	}
	return near, setPlanner(ctx, tx, nil)
}

// setWalk makes PostgreSQL walk the index until enough chunks passed the filter.
func (r *Retriever) setWalk(ctx context.Context, tx pgx.Tx, q retrieve.Query) error {
	ef := min(max(r.cfg.EfSearch, 2*q.Limit), 1000)
	_, err := tx.Exec(ctx, `
		SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', $1, true)`, strconv.Itoa(ef))
	if err != nil {
		return err
	}
	off := "off"
	return setPlanner(ctx, tx, &off)
}

// setPlanner changes the settings for this transaction; nil brings them back.
func setPlanner(ctx context.Context, tx pgx.Tx, value *string) error {
	_, err := tx.Exec(ctx, "SELECT set_config(name, $1::text, true) FROM unnest($2::text[]) AS name", value, planner)
	return err
}

// exact compares every matching vector of the parts.
func (r *Retriever) exact(ctx context.Context, tx pgx.Tx, parts []part, where filter.Filter, q retrieve.Query) ([]neighbour, error) {
	return query(ctx, tx, exactSQL(parts, where), parts, where, q)
}

// query runs one of the two statements.
func query(ctx context.Context, tx pgx.Tx, sql string, parts []part, where filter.Filter, q retrieve.Query) ([]neighbour, error) {
	rows, err := tx.Query(ctx, sql, queryArgs(parts, where, q))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (n neighbour, err error) {
		err = row.Scan(&n.chunk, &n.distance)
		return n, err
	})
}

// leastWalk is the least number of matches that a walk takes from the index. A
// filtered walk meets its matches in about the right order only, so the first one
// is not always the nearest.
const leastWalk = 40

func queryArgs(parts []part, where filter.Filter, q retrieve.Query) pgx.NamedArgs {
	args := pgx.NamedArgs{"question": pgvector.NewHalfVector(q.Vector), "collections": collections(parts), "limit": q.Limit, "walk": max(q.Limit, leastWalk)}
	maps.Copy(args, where.Args)
	return args
}

// source is the rest of FROM and the WHERE of both statements.
func source(condition string, where filter.Filter) string {
	if where.SQL == "" {
		return "WHERE " + condition
	}
	return "JOIN ragd.documents d ON d.id = v.document_id WHERE " + condition + " AND " + where.SQL
}

// exactSQL orders by the column without the cast of the index, so no index can
// answer it: every matching vector is compared.
func exactSQL(parts []part, where filter.Filter) string {
	condition := fmt.Sprintf("v.model_id = %d AND v.collection_id = ANY (@collections)", parts[0].model)
	return fmt.Sprintf(`
		SELECT v.chunk_id, v.embedding <=> @question AS distance
		FROM ragd.vectors v %s
		ORDER BY distance, v.chunk_id
		LIMIT @limit`, source(condition, where))
}

// indexSQL takes the nearest from the index, which returns them in about the right
// order, and sorts them outside. "+ 0" keeps the planner from trusting that order.
// Collection and model are literals, for the planner must prove that the partial
// index fits.
func indexSQL(p part, where filter.Filter) string {
	condition := fmt.Sprintf("v.model_id = %d AND v.collection_id = %d", p.model, p.collection)
	return fmt.Sprintf(`
		WITH near AS MATERIALIZED (
			SELECT v.chunk_id, v.embedding::halfvec(%[1]d) <=> @question::halfvec(%[1]d) AS distance
			FROM ragd.vectors v %[2]s
			ORDER BY v.embedding::halfvec(%[1]d) <=> @question::halfvec(%[1]d)
			LIMIT @walk)
		SELECT chunk_id, distance FROM near ORDER BY distance + 0, chunk_id LIMIT @limit`, p.dim, source(condition, where))
}
