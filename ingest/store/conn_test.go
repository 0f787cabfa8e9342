package store_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"ragd/ingest/store"
	"ragd/internal/localpg"
	"ragd/internal/testenv"
	"ragd/migrations"
	"ragd/retrieve/lexical"
)

func TestIsConnectionError(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("other"), false},
		{context.Canceled, false},
		{pgx.ErrNoRows, false},
		{io.ErrUnexpectedEOF, true},
		{fmt.Errorf("read: %w", io.EOF), true},
		{&net.OpError{Op: "write", Err: errors.New("broken pipe")}, true},
		{net.ErrClosed, true},
		{&pgconn.PgError{Code: "57P01"}, true},
		{&pgconn.PgError{Code: "57P03"}, true},
		{&pgconn.PgError{Code: "53300"}, true},
		{&pgconn.PgError{Code: "08006"}, true},
		{&pgconn.PgError{Code: "57014"}, false}, // statement cancelled
		{&pgconn.PgError{Code: "23505"}, false},
		{fmt.Errorf("put: %w", &pgconn.PgError{Code: "57P01"}), true},
	} {
		if got := store.IsConnectionError(tt.err); got != tt.want {
			t.Errorf("%v: %v, want %v", tt.err, got, tt.want)
		}
	}
}

// hangUp ends every other session of the database, as a restart does.
func hangUp(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	_, err = conn.Exec(t.Context(), `
		SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
		WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	if err != nil {
		t.Fatal(err)
	}
}

// warm makes the pool hold several open connections.
func warm(t *testing.T, pool *pgxpool.Pool) {
	t.Helper()
	var held []*pgxpool.Conn
	for range 6 {
		c, err := pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	for _, c := range held {
		c.Release()
	}
}

// TestServerComesBack: after a restart all pooled connections are dead; reads and
// writes succeed at once all the same, in turn and side by side.
func TestServerComesBack(t *testing.T) {
	pool := testenv.Database(t)
	s := store.New(pool, tenant, lexical.Analyzer{})
	put(t, s, "default", encoded("a.md", "one"))
	for round := range 3 {
		warm(t, pool)
		hangUp(t, pool)
		if round == 0 {
			put(t, s, "default", encoded("b.md", "two"))
			continue
		}
		g, ctx := errgroup.WithContext(t.Context())
		for range 10 {
			g.Go(func() error {
				_, err := s.Counts(ctx)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			t.Error(err)
		}
	}
	if n, err := s.Counts(t.Context()); err != nil || n.Documents != 2 {
		t.Errorf("%+v, %v", n, err)
	}
}

// TestRestart stops and starts a real server under a warm pool.
func TestRestart(t *testing.T) {
	dir, err := os.MkdirTemp("", "store-")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	start := func() *localpg.Server {
		pg, err := localpg.Start(t.Context(), localpg.Config{Install: testenv.Model(t, "postgres"), Data: dir + "/pg"})
		if err != nil {
			t.Fatal(err)
		}
		return pg
	}
	pg := start()
	cfg, err := store.PoolConfig(pg.URL())
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if err := migrations.Up(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	s := store.New(pool, tenant, lexical.Analyzer{})
	put(t, s, "default", encoded("a.md", "one"))
	warm(t, pool)
	if err := pg.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if _, err := s.Counts(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("while down: %v, want ErrUnavailable", err)
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("it took %v to notice", took)
	}
	pg = start()
	defer pg.Stop(context.Background())
	g, ctx := errgroup.WithContext(t.Context())
	for i := range 10 {
		g.Go(func() error {
			_, err := s.Put(ctx, "default", model, recipe, encoded(fmt.Sprintf("%d.md", i), "text"))
			return err
		})
		g.Go(func() error {
			_, err := s.Documents(ctx, "default")
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
	if n, err := s.Counts(t.Context()); err != nil || n.Documents != 11 {
		t.Errorf("after the restart: %+v, %v", n, err)
	}
}

func TestUnavailable(t *testing.T) {
	cfg, err := store.PoolConfig("postgres:///ragd?user=ragd&host=" + t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	s := store.New(pool, tenant, lexical.Analyzer{})
	begin := time.Now()
	_, readErr := s.Counts(t.Context())
	_, putErr := s.Put(t.Context(), "default", model, recipe, encoded("a.md", "one"))
	_, deleteErr := s.Delete(t.Context(), "default", []string{"a.md"})
	for name, err := range map[string]error{"read": readErr, "put": putErr, "delete": deleteErr} {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s: %v, want ErrUnavailable", name, err)
		}
	}
	if took := time.Since(begin); took > 2*time.Second {
		t.Errorf("it took %v to notice", took)
	}
}

// TestCancelledStatement: the server stops working for a caller that is gone, and
// the pool goes on.
func TestCancelledStatement(t *testing.T) {
	pool := testenv.Database(t)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	begin := time.Now()
	err := store.Read(ctx, pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, "SELECT pg_sleep(60)")
		return err
	})
	if err == nil || errors.Is(err, store.ErrUnavailable) {
		t.Errorf("%v, want a cancelled statement", err)
	}
	if took := time.Since(begin); took > 3*time.Second {
		t.Errorf("returned after %v", took)
	}
	deadline := time.Now().Add(3 * time.Second)
	for {
		var running int
		err := pool.QueryRow(t.Context(), `
			SELECT count(*) FROM pg_stat_activity
			WHERE state = 'active' AND query LIKE 'SELECT pg_sleep%' AND datname = current_database()`).Scan(&running)
		if err != nil {
			t.Fatal(err)
		}
		if running == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("the statement still runs on the server")
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestPoolConfig(t *testing.T) {
	_, err := store.PoolConfig("postgres://user:secret@host:notaport/db")
	if err == nil || !strings.Contains(err.Error(), "database.url") || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v, want an error that names database.url and hides the password", err)
	}
}
