package filter

import (
	"context"

	"github.com/jackc/pgx/v5"

	"ragd/retrieve"
)

// Collections returns the ids of a tenant's collections in the order of names, each
// once. The first that does not exist is an *retrieve.NoCollectionError.
func Collections(ctx context.Context, tx pgx.Tx, tenant string, names []string) ([]int64, error) {
	for _, name := range names {
		if !Storable(name) {
			return nil, &retrieve.NoCollectionError{Name: name}
		}
	}
	rows, err := tx.Query(ctx, "SELECT name, id FROM ragd.collections WHERE tenant = $1 AND name = ANY ($2)", tenant, names)
	if err != nil {
		return nil, err
	}
	known := map[string]int64{}
	var name string
	var id int64
	if _, err := pgx.ForEachRow(rows, []any{&name, &id}, func() error {
		known[name] = id
		return nil
	}); err != nil {
		return nil, err
	}
	ids := make([]int64, 0, len(known))
	listed := make(map[string]bool, len(names))
	for _, name := range names {
		id, ok := known[name]
		if !ok {
			return nil, &retrieve.NoCollectionError{Name: name}
		}
		if !listed[name] {
			ids, listed[name] = append(ids, id), true
		}
	}
	return ids, nil
}
