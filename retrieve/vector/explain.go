package vector

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"ragd/retrieve"
	"ragd/retrieve/internal/filter"
)

// Way is how a part of a query's chunks is searched.
type Way struct {
	// Exact says that all of them are compared; else the collection's index is walked.
	Exact bool
	// Chunks come into question.
	Chunks int64
	// Plan is PostgreSQL's, as EXPLAIN prints it.
	Plan string
}

// Explain tells the ways that Retrieve would go. Where an index gives up, Retrieve
// goes the exact way after it. It returns the errors of Retrieve.
func (r *Retriever) Explain(ctx context.Context, q retrieve.Query) (ways []Way, err error) {
	err = r.read(ctx, func(tx pgx.Tx) (err error) {
		ways, err = r.explain(ctx, tx, q)
		return err
	})
	return ways, err
}

func (r *Retriever) explain(ctx context.Context, tx pgx.Tx, q retrieve.Query) ([]Way, error) {
	parts, err := r.open(ctx, tx, q)
	where, ok := filter.New(q.Filters)
	if err != nil || !ok {
		return nil, err
	}
	if parts, err = countMatching(ctx, tx, parts, where); err != nil || len(parts) == 0 {
		return nil, err
	}
	walked, compared := r.plan(parts)
	var ways []Way
	for _, p := range walked {
		if err := r.setWalk(ctx, tx, q); err != nil {
			return nil, err
		}
		plan, err := explain(ctx, tx, indexSQL(p, where), []part{p}, where, q)
		if err != nil {
			return nil, err
		}
		ways = append(ways, Way{Chunks: p.chunks, Plan: plan})
	}
	if len(compared) == 0 {
		return ways, nil
	}
	if err := setPlanner(ctx, tx, nil); err != nil {
		return nil, err
	}
	all := Way{Exact: true}
	for _, p := range compared {
		all.Chunks += p.chunks
	}
	all.Plan, err = explain(ctx, tx, exactSQL(compared, where), compared, where, q)
	return append(ways, all), err
}

func explain(ctx context.Context, tx pgx.Tx, sql string, parts []part, where filter.Filter, q retrieve.Query) (string, error) {
	rows, err := tx.Query(ctx, "EXPLAIN "+sql, queryArgs(parts, where, q))
	if err != nil {
		return "", err
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return "", fmt.Errorf("explain: %w", err)
	}
	return strings.Join(lines, "\n"), nil
}
