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
)

// adopt takes over a server that runs in the folder already; nil says that there is
// none. One that is starting or shutting down is waited for: it answers in the
// end, or it is gone and the folder is free.
func (s *Server) adopt(ctx context.Context) (*process, error) {
	path := filepath.Join(s.lay.cluster, "postmaster.pid")
	pid, socket, err := readPostmaster(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	p := &process{pid: pid, cluster: s.lay.cluster, socket: socket}
	if !p.alive() {
		return nil, clearStale(ctx, s.lay.cluster, socket)
	}
	err = p.awaitReady(ctx)
	if errors.Is(err, errGone) {
		return nil, clearStale(ctx, s.lay.cluster, socket)
	}
	if err != nil {
		return nil, fmt.Errorf("a PostgreSQL (process %d) runs in %s but does not answer: %w", pid, s.lay.data, err)
	}
	s.log.Info("database adopted", "pid", pid, "data", s.lay.data)
	return p, nil
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
