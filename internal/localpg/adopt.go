package localpg

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// adopt takes over a server that runs in the folder already. One that is
// starting or shutting down is waited for: it answers in the end, or it is gone
// and the folder is free.
func (s *Server) adopt(ctx context.Context) error {
	path := filepath.Join(s.lay.cluster, "postmaster.pid")
	pid, socket, err := readPostmaster(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", path, err)
	}
	if !isPostmaster(pid, s.lay.cluster) {
		return clearStale(ctx, s.lay.cluster, socket)
	}
	s.proc = &process{pid: pid, cluster: s.lay.cluster}
	s.socket = socket
	if err := s.awaitReady(ctx); errors.Is(err, errGone) {
		s.proc = nil
		return clearStale(ctx, s.lay.cluster, socket)
	} else if err != nil {
		return fmt.Errorf("a PostgreSQL (process %d) runs in %s but does not answer: %w", pid, s.lay.data, err)
	}
	s.adopted = true
	s.log.Info("database adopted", "pid", pid, "data", s.lay.data)
	return nil
}

// clearStale removes the lock files of a server that is gone, in the cluster and
// the socket folder: the number in them may be a zombie's or, after a reboot,
// another program's, and PostgreSQL would refuse to start. They also guard against
// backends that outlive their postmaster, so those are waited for first. Where
// /proc does not tell, the files stay and PostgreSQL decides.
func clearStale(ctx context.Context, cluster, socket string) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		busy, err := clusterBusy(cluster)
		if err != nil {
			return nil
		}
		if !busy {
			break
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("processes of a PostgreSQL that was killed still work in %s: %w", cluster, ctx.Err())
		case <-tick.C:
		}
	}
	stale := []string{filepath.Join(cluster, "postmaster.pid")}
	if socket != "" {
		stale = append(stale, filepath.Join(socket, socketName+".lock"))
	}
	for _, path := range stale {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove a stale lock file: %w", err)
		}
	}
	return nil
}

// clusterBusy says whether any process works in the cluster folder, which
// PostgreSQL's processes do all their life.
func clusterBusy(cluster string) (bool, error) {
	cwds, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err == nil && len(cwds) == 0 {
		err = errors.ErrUnsupported
	}
	for _, link := range cwds {
		if dir, err := os.Readlink(link); err == nil && dir == cluster {
			return true, nil
		}
	}
	return false, err
}

// readPostmaster reads the process number and the socket folder from
// postmaster.pid: lines 1 and 5, as the server manual's "postmaster.pid" has them.
func readPostmaster(path string) (pid int, socket string, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, "", err
	}
	lines := strings.Split(string(b), "\n")
	pid, err = strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pid <= 1 {
		return 0, "", fmt.Errorf("no process number in %q", lines[0])
	}
	if len(lines) > 4 {
		socket = lines[4]
	}
	return pid, socket, nil
}

// SQLSTATE codes that say: try again.
const (
	cannotConnectNow   = "57P03"
	tooManyConnections = "53300"
)

// errGone: the server ended while it was waited for.
var errGone = errors.New("the server process ended")

// awaitReady waits until the server accepts connections.
func (s *Server) awaitReady(ctx context.Context) error {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		err := s.probe(ctx)
		if err == nil {
			return nil
		}
		if !s.proc.alive() {
			return errGone
		}
		var pgErr *pgconn.PgError
		if errors.As(err, &pgErr) && pgErr.Code != cannotConnectNow && pgErr.Code != tooManyConnections {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-s.proc.exited:
		case <-tick.C:
		}
	}
}

func (s *Server) probe(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, connURL(s.socket, "postgres"))
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// createDatabase makes ragd's database in a new cluster.
func (s *Server) createDatabase(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, connURL(s.socket, "postgres"))
	if err != nil {
		return fmt.Errorf("connect to the private database: %w", err)
	}
	defer conn.Close(ctx)
	var found bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", database).Scan(&found); err != nil {
		return fmt.Errorf("look for the database: %w", err)
	}
	if found {
		return nil
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+database); err != nil {
		return fmt.Errorf("create the database: %w", err)
	}
	return nil
}
