// Package store keeps documents, chunks and vectors in PostgreSQL.
//
// Each Put and Delete is one transaction, so readers see a document wholly before
// or wholly after. Puts of the same document wait for each other on an advisory
// lock; locks are always taken in the order document, vectors, lexical index, counters,
// so that writers never deadlock.
package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ragd/ingest"
)

// Errors of the store.
var (
	// ErrUnavailable: the database cannot be reached; the call may be repeated.
	ErrUnavailable = ingest.ErrUnavailable
	// ErrInvalid: a document cannot be stored as it is; the message says why.
	ErrInvalid = errors.New("document cannot be stored")
)

// Store implements ingest.Store for one tenant. It is safe for concurrent use.
type Store struct {
	pool     *pgxpool.Pool
	tenant   string
	analyzer ingest.Analyzer
}

var _ ingest.Store = (*Store)(nil)

// New returns the store of a tenant, whose lexical index holds the terms that
// analyzer finds. The database must be migrated.
func New(pool *pgxpool.Pool, tenant string, analyzer ingest.Analyzer) *Store {
	return &Store{pool: pool, tenant: tenant, analyzer: analyzer}
}

// States implements ingest.Store. An unknown collection has no states.
func (s *Store) States(ctx context.Context, collection string) (map[string]ingest.State, error) {
	states := map[string]ingest.State{}
	err := Read(ctx, s.pool, func(tx pgx.Tx) error {
		clear(states)
		rows, err := tx.Query(ctx, `
			SELECT d.path, d.hash, d.recipe
			FROM ragd.documents d JOIN ragd.collections c ON c.id = d.collection_id
			WHERE c.tenant = $1 AND c.name = $2`, s.tenant, collection)
		if err != nil {
			return err
		}
		var path string
		var st ingest.State
		_, err = pgx.ForEachRow(rows, []any{&path, &st.Hash, &st.Recipe}, func() error {
			states[path] = st
			return nil
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the states of collection %q: %w", collection, err)
	}
	return states, nil
}

// DocumentInfo describes a stored document.
type DocumentInfo struct {
	ID             int64          `json:"id"`
	Path           string         `json:"path"`
	Title          string         `json:"title"`
	Hash           string         `json:"hash"`
	Type           string         `json:"type"`
	Charset        string         `json:"charset"`
	CharsetGuessed bool           `json:"charset_guessed"`
	Bytes          int64          `json:"bytes"`
	Modified       *time.Time     `json:"modified,omitempty"`
	Metadata       map[string]any `json:"metadata"`
	Chunks         int            `json:"chunks"`
	Created        time.Time      `json:"created"`
	Updated        time.Time      `json:"updated"`
}

// Documents lists a collection's documents by path. An unknown collection is an
// *ingest.NoCollectionError.
func (s *Store) Documents(ctx context.Context, collection string) ([]DocumentInfo, error) {
	var docs []DocumentInfo
	err := Read(ctx, s.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			SELECT d.id, d.path, d.title, d.hash, d.type, d.charset, d.charset_guessed, d.bytes,
			       d.modified, d.metadata, d.chunks, d.created, d.updated
			FROM ragd.documents d JOIN ragd.collections c ON c.id = d.collection_id
			WHERE c.tenant = $1 AND c.name = $2
			ORDER BY d.path`, s.tenant, collection)
		if err != nil {
			return err
		}
		if docs, err = pgx.CollectRows(rows, pgx.RowToStructByPos[DocumentInfo]); err != nil || len(docs) > 0 {
			return err
		}
		var there bool
		err = tx.QueryRow(ctx, "SELECT EXISTS (SELECT FROM ragd.collections WHERE tenant = $1 AND name = $2)", s.tenant, collection).Scan(&there)
		if err == nil && !there {
			return &ingest.NoCollectionError{Name: collection}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the documents of collection %q: %w", collection, err)
	}
	return docs, nil
}

// CollectionInfo describes a collection.
type CollectionInfo struct {
	Name      string    `json:"name"`
	Documents int64     `json:"documents"`
	Chunks    int64     `json:"chunks"`
	Bytes     int64     `json:"bytes"`
	Created   time.Time `json:"created"`
}

// Collections lists the tenant's collections by name.
func (s *Store) Collections(ctx context.Context) ([]CollectionInfo, error) {
	var list []CollectionInfo
	err := Read(ctx, s.pool, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `
			SELECT c.name, count(d.id), coalesce(sum(d.chunks), 0)::bigint, coalesce(sum(d.bytes), 0)::bigint, c.created
			FROM ragd.collections c LEFT JOIN ragd.documents d ON d.collection_id = c.id
			WHERE c.tenant = $1
			GROUP BY c.id
			ORDER BY c.name`, s.tenant)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, pgx.RowToStructByPos[CollectionInfo])
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list the collections: %w", err)
	}
	return list, nil
}

// Counts are the tenant's totals.
type Counts struct {
	Collections int64 `json:"collections"`
	Documents   int64 `json:"documents"`
	Chunks      int64 `json:"chunks"`
}

// Counts returns how much the tenant has stored.
func (s *Store) Counts(ctx context.Context) (Counts, error) {
	var n Counts
	err := Read(ctx, s.pool, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `
			SELECT count(DISTINCT c.id), count(d.id), coalesce(sum(d.chunks), 0)::bigint
			FROM ragd.collections c LEFT JOIN ragd.documents d ON d.collection_id = c.id
			WHERE c.tenant = $1`, s.tenant).Scan(&n.Collections, &n.Documents, &n.Chunks)
	})
	if err != nil {
		return Counts{}, fmt.Errorf("count the documents: %w", err)
	}
	return n, nil
}
