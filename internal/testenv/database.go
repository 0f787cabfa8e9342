package testenv

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"ragd/ingest/store"
	"ragd/internal/localpg"
	"ragd/migrations"
)

// template is the migrated database that tests get copies of.
const template = "testenv_template"

// Database returns a pool on a fresh, migrated database, which is dropped when
// the test ends. The first call in a process starts a private PostgreSQL in a
// temporary folder; it stops when the process ends, however it ends.
// pool.Config().ConnString() is the database's URL.
func Database(tb testing.TB) *pgxpool.Pool {
	tb.Helper()
	srv, err := testServer()
	if err != nil {
		tb.Fatalf("test database: %v", err)
	}
	name := fmt.Sprintf("test_%d", srv.made.Add(1))
	ctx := context.Background()
	if err := srv.exec(ctx, "CREATE DATABASE "+name+" TEMPLATE "+template); err != nil {
		tb.Fatalf("test database: %v", err)
	}
	pool, err := srv.connect(ctx, name)
	if err != nil {
		tb.Fatalf("test database: %v", err)
	}
	tb.Cleanup(func() {
		pool.Close()
		if err := srv.exec(ctx, "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			tb.Errorf("test database: %v", err)
		}
	})
	return pool
}

// server is the process's PostgreSQL.
type server struct {
	pg   *localpg.Server
	made atomic.Int64
	// watched is the watcher's input; kept here, for the garbage collector would
	// close it.
	watched io.Closer
}

// testServer starts the server at the first call.
var testServer = sync.OnceValues(startServer)

func startServer() (*server, error) {
	install, err := ensure("postgres")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "ragd-test-")
	if err != nil {
		return nil, err
	}
	if os.Geteuid() == 0 { // the server runs as another user
		if err := os.Chmod(dir, 0o755); err != nil {
			return nil, err
		}
	}
	ctx := context.Background()
	pg, err := localpg.Start(ctx, localpg.Config{Install: install, Data: filepath.Join(dir, "pg")})
	if err != nil {
		return nil, err
	}
	watched, err := stopAtExit(pg.PID(), dir)
	if err != nil {
		return nil, err
	}
	s := &server{pg: pg, watched: watched}
	return s, s.prepare(ctx)
}

// stopAtExit leaves a watcher behind that waits for the end of its input, which
// the system closes when this process ends, be it killed; then it stops the
// server and removes the folder.
func stopAtExit(pid int, dir string) (io.Closer, error) {
	const script = `cat >/dev/null
kill -INT "$0"; i=0
while kill -0 "$0" 2>/dev/null && [ $i -lt 200 ]; do sleep 0.05; i=$((i+1)); done
rm -rf "$1"`
	cmd := exec.Command("sh", "-c", script, strconv.Itoa(pid), dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	return in, cmd.Start()
}

// prepare gives up durability, which tests need not, and makes the template.
func (s *server) prepare(ctx context.Context) error {
	for _, stmt := range []string{
		"ALTER SYSTEM SET fsync = off",
		"ALTER SYSTEM SET synchronous_commit = off",
		"SELECT pg_reload_conf()",
		"CREATE DATABASE " + template,
	} {
		if err := s.exec(ctx, stmt); err != nil {
			return err
		}
	}
	pool, err := s.connect(ctx, template)
	if err != nil {
		return err
	}
	defer pool.Close()
	return migrations.Up(ctx, pool)
}

func (s *server) exec(ctx context.Context, stmt string) error {
	conn, err := pgx.Connect(ctx, s.pg.URL())
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, stmt)
	return err
}

// connect opens a pool on another database of the server.
func (s *server) connect(ctx context.Context, name string) (*pgxpool.Pool, error) {
	u, err := url.Parse(s.pg.URL())
	if err != nil {
		return nil, err
	}
	u.Path = "/" + name
	cfg, err := store.PoolConfig(u.String())
	if err != nil {
		return nil, err
	}
	return pgxpool.NewWithConfig(ctx, cfg)
}
