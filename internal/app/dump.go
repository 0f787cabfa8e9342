package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"

	"ragd/ingest/store"
	"ragd/internal/config"
	"ragd/internal/localpg"
	"ragd/migrations"
)

// ErrNotEmpty: a database that holds documents is not overwritten unless asked to.
var ErrNotEmpty = errors.New("the database holds documents")

// Dump writes the database in use, in pg_dump's custom format: the schema ragd with
// documents, chunks, vectors and indexes. The private database is started when it does
// not run. Others may read and write meanwhile; the dump is of one moment.
func Dump(ctx context.Context, cfg config.Config, opts Options, w io.Writer) error {
	return withDatabase(ctx, cfg, opts, func(url, bin string) error {
		return runTool(ctx, nil, w, filepath.Join(bin, "pg_dump"), "--format=custom", "--schema=ragd", "--no-owner", "--no-privileges", "--dbname="+url)
	})
}

// Restore replaces the database in use by a dump, in one transaction: after an error
// all is as it was. It fails with ErrNotEmpty when documents would be lost, unless
// replace is set.
func Restore(ctx context.Context, cfg config.Config, opts Options, r io.Reader, replace bool) error {
	return withDatabase(ctx, cfg, opts, func(url, bin string) error {
		if err := restorable(ctx, url, replace); err != nil {
			return err
		}
		return runTool(ctx, r, nil, filepath.Join(bin, "pg_restore"),
			"--clean", "--if-exists", "--no-owner", "--no-privileges", "--single-transaction", "--exit-on-error", "--dbname="+url)
	})
}

// restorable makes sure that the extensions are there, which a dump of the schema does
// not hold, and that nothing is lost.
func restorable(ctx context.Context, url string, replace bool) error {
	cfg, err := store.PoolConfig(url)
	if err != nil {
		return err
	}
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return err
	}
	defer pool.Close()
	if err := migrations.Up(ctx, pool); err != nil {
		return err
	}
	var documents int64
	if err := pool.QueryRow(ctx, "SELECT count(*) FROM ragd.documents").Scan(&documents); err != nil {
		return err
	}
	if documents > 0 && !replace {
		return fmt.Errorf("%w: %d of them", ErrNotEmpty, documents)
	}
	return nil
}

// withDatabase runs fn with the connection string of the database in use and the
// folder of PostgreSQL's programs: the private installation's, which also serves an
// outside server unless that is newer.
func withDatabase(ctx context.Context, cfg config.Config, opts Options, fn func(url, bin string) error) (err error) {
	a := &App{cfg: cfg, opts: opts, log: opts.Log}
	if a.home, err = home(cfg); err != nil {
		return err
	}
	install, err := a.ensure(ctx, "postgres")
	if err != nil {
		return err
	}
	url, err := DatabaseURL(cfg)
	if errors.Is(err, localpg.ErrNotRunning) {
		url, err = a.databaseURL(ctx)
	}
	if err == nil {
		err = fn(url, filepath.Join(install, "bin"))
	}
	return errors.Join(err, a.Close())
}

// maxComplaint bounds what is told of a program's complaints.
const maxComplaint = 2000

func runTool(ctx context.Context, in io.Reader, out io.Writer, path string, args ...string) error {
	var complaint bytes.Buffer
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, out, &complaint
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(complaint.String())
		return fmt.Errorf("%s: %w: %.*s", filepath.Base(path), err, maxComplaint, text)
	}
	return nil
}
