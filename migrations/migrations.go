// Package migrations holds the database schema as numbered SQL and brings a
// database up to it. All tables lie in the schema "ragd".
package migrations

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

//go:embed *.sql
var files embed.FS

// ErrNewer: the database was migrated by a later ragd than this one.
var ErrNewer = errors.New("database schema is newer than this ragd")

const (
	versionTable = "ragd.goose_db_version"
	// lockKey is the advisory lock that one migrating process holds: "ragdmigr" in ASCII.
	lockKey = 0x726167646d696772
)

// Up checks the database (see Check), creates the extension and the schema when
// they are missing and applies the migrations that the database lacks. Several
// processes may call it at once; one works, the others wait for it.
func Up(ctx context.Context, pool *pgxpool.Pool) error {
	conn, err := pgx.ConnectConfig(ctx, pool.Config().ConnConfig)
	if err != nil {
		return fmt.Errorf("connect to the database: %w", err)
	}
	// Closing the connection releases the lock.
	defer conn.Close(context.WithoutCancel(ctx))
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", int64(lockKey)); err != nil {
		return fmt.Errorf("lock the database for migration: %w", err)
	}
	if err := Check(ctx, conn); err != nil {
		return err
	}
	if err := createBase(ctx, conn); err != nil {
		return err
	}
	return apply(ctx, pool)
}

// createBase makes what the migrations themselves need.
func createBase(ctx context.Context, conn *pgx.Conn) error {
	for _, stmt := range []string{
		"CREATE EXTENSION IF NOT EXISTS vector",
		"CREATE SCHEMA IF NOT EXISTS ragd",
	} {
		if _, err := conn.Exec(ctx, stmt); err != nil {
			return fmt.Errorf("%s: %w", stmt, err)
		}
	}
	return nil
}

func apply(ctx context.Context, pool *pgxpool.Pool) error {
	db := stdlib.OpenDBFromPool(pool)
	defer db.Close()
	p, err := provider(db)
	if err != nil {
		return err
	}
	have, want, err := p.GetVersions(ctx)
	if err != nil {
		return fmt.Errorf("read the schema version: %w", err)
	}
	if have > want {
		return fmt.Errorf("%w: version %d in the database, %d known here", ErrNewer, have, want)
	}
	if _, err := p.Up(ctx); err != nil {
		return fmt.Errorf("migrate the database: %w", err)
	}
	return nil
}

// Version returns the schema version of the database and the one that this ragd
// needs. have is 0 before the first migration.
func Version(ctx context.Context, pool *pgxpool.Pool) (have, want int64, err error) {
	var exists bool
	if err := pool.QueryRow(ctx, "SELECT to_regclass($1) IS NOT NULL", versionTable).Scan(&exists); err != nil {
		return 0, 0, fmt.Errorf("read the schema version: %w", err)
	}
	if want, err = latest(); err != nil || !exists {
		return 0, want, err
	}
	err = pool.QueryRow(ctx, "SELECT coalesce(max(version_id), 0) FROM "+versionTable+" WHERE is_applied").Scan(&have)
	if err != nil {
		return 0, want, fmt.Errorf("read the schema version: %w", err)
	}
	return have, want, nil
}

// latest is the highest number among the embedded migrations.
func latest() (int64, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return 0, err
	}
	var last int64
	for _, e := range entries {
		n, err := goose.NumericComponent(e.Name())
		if err != nil {
			return 0, fmt.Errorf("migration %s: %w", e.Name(), err)
		}
		if n > last {
			last = n
		}
	}
	return last, nil
}

func provider(db *sql.DB) (*goose.Provider, error) {
	p, err := goose.NewProvider(goose.DialectPostgres, db, files,
		goose.WithTableName(versionTable), goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return nil, fmt.Errorf("embedded migrations: %w", err)
	}
	return p, nil
}
