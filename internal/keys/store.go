package keys

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Store keeps keys in the database. A nil one holds none.
type Store struct{ pool *pgxpool.Pool }

// NewStore returns the keys of a migrated database.
func NewStore(pool *pgxpool.Pool) *Store { return &Store{pool} }

const columns = "id, name, tenant, role, coalesce(requests_per_minute, 0), coalesce(tokens_per_minute, 0), coalesce(concurrent, 0), created"

func scan(row pgx.CollectableRow) (k Key, err error) {
	err = row.Scan(&k.ID, &k.Name, &k.Tenant, &k.Role, &k.RequestsPerMinute, &k.TokensPerMinute, &k.Concurrent, &k.Created)
	return k, err
}

// Add makes a key and returns it with its secret, which nobody can tell again.
func (s *Store) Add(ctx context.Context, k Key) (Key, string, error) {
	if err := k.Normalise(); err != nil {
		return Key{}, "", err
	}
	secret := newSecret()
	hash := Hash(secret)
	rows, err := s.pool.Query(ctx, `
		INSERT INTO ragd.keys (hash, name, tenant, role, requests_per_minute, tokens_per_minute, concurrent)
		VALUES ($1, $2, $3, $4, nullif($5, 0), nullif($6, 0), nullif($7, 0)) RETURNING `+columns,
		hash[:], k.Name, k.Tenant, k.Role, k.RequestsPerMinute, k.TokensPerMinute, k.Concurrent)
	if err != nil {
		return Key{}, "", fmt.Errorf("add a key: %w", err)
	}
	if k, err = pgx.CollectExactlyOneRow(rows, scan); err != nil {
		return Key{}, "", fmt.Errorf("add a key: %w", err)
	}
	return k, secret, nil
}

// List lists the keys that are valid.
func (s *Store) List(ctx context.Context) ([]Key, error) {
	rows, err := s.pool.Query(ctx, "SELECT "+columns+" FROM ragd.keys WHERE revoked IS NULL ORDER BY id")
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	list, err := pgx.CollectRows(rows, scan)
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	return list, nil
}

// Revoke ends a key. It returns ErrNotFound when there is none.
func (s *Store) Revoke(ctx context.Context, id int64) error {
	tag, err := s.pool.Exec(ctx, "UPDATE ragd.keys SET revoked = now() WHERE id = $1 AND revoked IS NULL", id)
	if err != nil {
		return fmt.Errorf("revoke a key: %w", err)
	}
	if tag.RowsAffected() == 0 {
		return fmt.Errorf("key %d: %w", id, ErrNotFound)
	}
	return nil
}

// find returns the key of a hash, or ErrNotFound.
func (s *Store) find(ctx context.Context, hash [32]byte) (Key, error) {
	if s == nil {
		return Key{}, ErrNotFound
	}
	rows, err := s.pool.Query(ctx, "SELECT "+columns+" FROM ragd.keys WHERE hash = $1 AND revoked IS NULL", hash[:])
	if err != nil {
		return Key{}, fmt.Errorf("find a key: %w", err)
	}
	k, err := pgx.CollectExactlyOneRow(rows, scan)
	if errors.Is(err, pgx.ErrNoRows) {
		return Key{}, ErrNotFound
	}
	if err != nil {
		return Key{}, fmt.Errorf("find a key: %w", err)
	}
	return k, nil
}

// any reports whether there is a valid key.
func (s *Store) any(ctx context.Context) (found bool, err error) {
	if s == nil {
		return false, nil
	}
	err = s.pool.QueryRow(ctx, "SELECT EXISTS (SELECT FROM ragd.keys WHERE revoked IS NULL)").Scan(&found)
	if err != nil {
		return false, fmt.Errorf("look for keys: %w", err)
	}
	return found, nil
}
