package vector

import (
	"context"
	"fmt"
	"maps"
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

// search chooses the way and walks it.
func (r *Retriever) search(ctx context.Context, tx pgx.Tx, m model, where filter.Filter, q retrieve.Query) ([]neighbour, error) {
	matching, err := countMatching(ctx, tx, m, where)
	if err != nil || matching == 0 {
		return nil, err
	}
	if matching >= int64(r.cfg.ExactBelow) {
		found, err := r.approximate(ctx, tx, m, where, q)
		if err != nil || len(found) == q.Limit {
			return found, err
		}
	}
	return query(ctx, tx, exactSQL(m, where), m, where, q)
}

// countMatching returns how many chunks the filters leave.
func countMatching(ctx context.Context, tx pgx.Tx, m model, where filter.Filter) (n int64, err error) {
	if where.SQL == "" {
		return m.chunks, nil
	}
	args := pgx.NamedArgs{"collection": m.collection}
	maps.Copy(args, where.Args)
	err = tx.QueryRow(ctx, `
		SELECT coalesce(sum(d.chunks), 0)::bigint
		FROM ragd.documents d
		WHERE d.collection_id = @collection AND `+where.SQL, args).Scan(&n)
	return n, err
}

// approximate walks the HNSW index. The settings end with the transaction; they
// leave the planner no other way than the index with a look-up of each document.
func (r *Retriever) approximate(ctx context.Context, tx pgx.Tx, m model, where filter.Filter, q retrieve.Query) ([]neighbour, error) {
	ef := min(max(r.cfg.EfSearch, 2*q.Limit), 1000)
	_, err := tx.Exec(ctx, `
		SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true),
		       set_config('hnsw.ef_search', $1, true),
		       set_config('enable_seqscan', 'off', true),
		       set_config('enable_bitmapscan', 'off', true),
		       set_config('enable_sort', 'off', true),
		       set_config('enable_hashjoin', 'off', true),
		       set_config('enable_mergejoin', 'off', true)`, strconv.Itoa(ef))
	if err != nil {
		return nil, err
	}
	return query(ctx, tx, indexSQL(m, where), m, where, q)
}

// query runs one of the two statements.
func query(ctx context.Context, tx pgx.Tx, sql string, m model, where filter.Filter, q retrieve.Query) ([]neighbour, error) {
	rows, err := tx.Query(ctx, sql, queryArgs(m, where, q))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (n neighbour, err error) {
		err = row.Scan(&n.chunk, &n.distance)
		return n, err
	})
}

func queryArgs(m model, where filter.Filter, q retrieve.Query) pgx.NamedArgs {
	args := pgx.NamedArgs{"question": pgvector.NewHalfVector(q.Vector), "collection": m.collection, "limit": q.Limit}
	maps.Copy(args, where.Args)
	return args
}

// source is the FROM and WHERE of both statements. The model's number is a
// literal, for the planner must prove that the partial index fits.
func source(m model, where filter.Filter) string {
	if where.SQL == "" {
		return fmt.Sprintf("FROM ragd.vectors v WHERE v.model_id = %d AND v.collection_id = @collection", m.id)
	}
	return fmt.Sprintf(`FROM ragd.vectors v JOIN ragd.documents d ON d.id = v.document_id
		WHERE v.model_id = %d AND v.collection_id = @collection AND %s`, m.id, where.SQL)
}

// exactSQL orders by the column without the cast of the index, so no index can
// answer it: every matching vector is compared.
func exactSQL(m model, where filter.Filter) string {
	return fmt.Sprintf(`
		SELECT v.chunk_id, v.embedding <=> @question AS distance
		%s
		ORDER BY distance, v.chunk_id
		LIMIT @limit`, source(m, where))
}

// indexSQL takes the nearest from the index, which returns them in about the right
// order, and sorts them outside. "+ 0" keeps the planner from trusting that order.
func indexSQL(m model, where filter.Filter) string {
	return fmt.Sprintf(`
		WITH near AS MATERIALIZED (
			SELECT v.chunk_id, v.embedding::halfvec(%[1]d) <=> @question::halfvec(%[1]d) AS distance
			%[2]s
			ORDER BY v.embedding::halfvec(%[1]d) <=> @question::halfvec(%[1]d)
			LIMIT @limit)
		SELECT chunk_id, distance FROM near ORDER BY distance + 0, chunk_id`, m.dim, source(m, where))
}
