package migrations_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"ragd/internal/testenv"
	"ragd/migrations"
)

// fresh returns a pool on an empty database beside the test's own.
func fresh(t *testing.T, name string, options ...string) *pgxpool.Pool {
	t.Helper()
	admin := testenv.Database(t)
	exec(t, admin, "CREATE DATABASE "+name+" "+strings.Join(options, " "))
	t.Cleanup(func() {
		if _, err := admin.Exec(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(admin.Config().ConnString())
	if err != nil {
		t.Fatal(err)
	}
	u.Path = "/" + name
	pool, err := pgxpool.New(t.Context(), u.String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

func exec(t *testing.T, pool *pgxpool.Pool, stmt string) {
	t.Helper()
	if _, err := pool.Exec(t.Context(), stmt); err != nil {
		t.Fatalf("%s: %v", stmt, err)
	}
}

// TestUp: several processes migrate an empty database at once, and again.
func TestUp(t *testing.T) {
	pool := fresh(t, "up")
	have, want, err := migrations.Version(t.Context(), pool)
	if err != nil || have != 0 || want < 1 {
		t.Fatalf("before: version %d of %d (%v)", have, want, err)
	}
	for range 2 {
		g, ctx := errgroup.WithContext(t.Context())
		for range 4 {
			g.Go(func() error { return migrations.Up(ctx, pool) })
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		if have, want, err := migrations.Version(t.Context(), pool); err != nil || have != want {
			t.Errorf("after: version %d of %d (%v)", have, want, err)
		}
	}
	exec(t, pool, "SELECT id FROM ragd.chunks")
}

func TestNewerDatabase(t *testing.T) {
	pool := fresh(t, "newer")
	if err := migrations.Up(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	exec(t, pool, "INSERT INTO ragd.goose_db_version (version_id, is_applied) VALUES (999, true)")
	if err := migrations.Up(t.Context(), pool); !errors.Is(err, migrations.ErrNewer) || !strings.Contains(err.Error(), "999") {
		t.Errorf("%v, want ErrNewer naming version 999", err)
	}
}

// TestOrdinaryUser: an outside database is given to a user with few rights. Each
// lack is named with the statement that mends it; running those is enough.
func TestOrdinaryUser(t *testing.T) {
	pool := fresh(t, "outside")
	exec(t, pool, `CREATE ROLE "o'brien"`)
	t.Cleanup(func() {
		exec := func(stmt string) {
			if _, err := pool.Exec(context.Background(), stmt); err != nil {
				t.Error(err)
			}
		}
		exec(`DROP OWNED BY "o'brien"`)
		exec(`DROP ROLE "o'brien"`)
	})
	cfg := pool.Config()
	cfg.ConnConfig.RuntimeParams["role"] = "o'brien"
	user, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(user.Close)

	for _, step := range []struct{ says, mend string }{
		{"CREATE EXTENSION vector;", "CREATE EXTENSION vector;"},
		{`GRANT CREATE ON DATABASE "outside" TO "o'brien";`, `GRANT CREATE ON DATABASE "outside" TO "o'brien";`},
	} {
		err := migrations.Up(t.Context(), user)
		if !errors.Is(err, migrations.ErrUnsuitable) || !strings.Contains(err.Error(), step.says) {
			t.Fatalf("%v, want ErrUnsuitable with %q", err, step.says)
		}
		exec(t, pool, step.mend)
	}
	if err := migrations.Up(t.Context(), user); err != nil {
		t.Fatal(err)
	}
}

func TestForeignSchema(t *testing.T) {
	pool := fresh(t, "foreign_schema")
	exec(t, pool, "CREATE EXTENSION vector")
	exec(t, pool, "CREATE SCHEMA ragd")
	exec(t, pool, "CREATE ROLE guest")
	t.Cleanup(func() {
		if _, err := pool.Exec(context.Background(), "DROP ROLE guest"); err != nil {
			t.Error(err)
		}
	})
	conn, err := pgx.ConnectConfig(t.Context(), pool.Config().ConnConfig)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	if err := migrations.Check(t.Context(), conn); err != nil {
		t.Errorf("as superuser: %v", err)
	}
	if _, err := conn.Exec(t.Context(), "SET ROLE guest"); err != nil {
		t.Fatal(err)
	}
	err = migrations.Check(t.Context(), conn)
	if !errors.Is(err, migrations.ErrUnsuitable) || !strings.Contains(err.Error(), `GRANT USAGE, CREATE ON SCHEMA ragd TO "guest";`) {
		t.Errorf("%v, want ErrUnsuitable with the grant", err)
	}
}

func TestEncoding(t *testing.T) {
	pool := fresh(t, "latin", "ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0")
	err := migrations.Up(t.Context(), pool)
	if !errors.Is(err, migrations.ErrUnsuitable) || !strings.Contains(err.Error(), "LATIN1") {
		t.Errorf("%v, want ErrUnsuitable naming LATIN1", err)
	}
}
