package app

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5/pgxpool"

	"ragd/ingest/store"
	"ragd/internal/keys"
	"ragd/internal/localpg"
	"ragd/internal/tenant"
	"ragd/migrations"
	"ragd/retrieve/lexical"
	"ragd/telemetry/pgtrace"
)

// openDatabase connects to the configured database, or to the private one which
// it starts, and brings the schema up to date.
func (a *App) openDatabase(ctx context.Context) error {
	url, err := a.databaseURL(ctx)
	if err != nil {
		return err
	}
	cfg, err := store.PoolConfig(url)
	if err != nil {
		return err
	}
	cfg.MaxConns = int32(a.cfg.Database.MaxConns)
	// The wait for a connection is a metric of the pool, and no span of its own.
	tracer, err := pgtrace.New(a.tel.TracerProvider(), a.tel.MeterProvider(), cfg.ConnConfig.Database)
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	cfg.ConnConfig.Tracer = tracer
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("database: %w", err)
	}
	a.pool = pool
	a.onClose(func(context.Context) error { pool.Close(); return nil })
	if err := otelpgx.RecordStats(pool, otelpgx.WithStatsMeterProvider(a.tel.MeterProvider())); err != nil {
		return fmt.Errorf("database: pool metrics: %w", err)
	}
	if err := migrations.Up(ctx, pool); err != nil {
		return fmt.Errorf("database: %w", err)
	}
	a.store = store.New(pool, tenant.Default, lexical.Analyzer{})
	a.guard, err = keys.NewGuard(keys.NewStore(pool), a.cfg.Server.Keys)
	return err
}

func (a *App) databaseURL(ctx context.Context) (string, error) {
	if a.cfg.Database.URL != "" {
		return a.cfg.Database.URL, nil
	}
	srv, err := a.startPostgres(ctx)
	if err != nil {
		return "", err
	}
	a.onClose(srv.Stop)
	a.log.Info("private PostgreSQL is up", "folder", filepath.Join(a.home, "pg"), "adopted", srv.Adopted())
	return srv.URL(), nil
}

func (a *App) startPostgres(ctx context.Context) (*localpg.Server, error) {
	install, err := a.ensure(ctx, "postgres")
	if err != nil {
		return nil, err
	}
	return localpg.Start(ctx, localpg.Config{Install: install, Data: filepath.Join(a.home, "pg"), Logger: a.log})
}
