package localpg

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// pollInterval is how often a server that is not our child is looked at.
const pollInterval = 50 * time.Millisecond

// process is a postmaster, our child or an adopted one.
type process struct {
	pid     int
	cluster string
	socket  string        // folder of the socket
	exited  chan struct{} // closed when a child has ended; nil for an adopted server
}

// adopted says whether another process than this one started it.
func (p *process) adopted() bool { return p.exited == nil }

// settings are the server's parameters. Everything else keeps PostgreSQL's
// default, above all fsync and full_page_writes.
func settings(socket string) []string {
	return []string{
		"listen_addresses=",
		"port=" + socketPort,
		"unix_socket_directories=" + quoteConf(socket),
		"unix_socket_permissions=0700",
		"max_connections=60",
		"shared_buffers=256MB",
		"work_mem=16MB",
		"maintenance_work_mem=256MB",
		"effective_cache_size=1GB",
		"max_wal_size=2GB",
		"random_page_cost=1.1",
		// Parallel index builds take shared memory that containers cap at 64 MB.
		"max_parallel_maintenance_workers=0",
		"jit=off",
		"logging_collector=off",
		"log_min_messages=warning",
		"log_checkpoints=off",
		// A statement whose client died ends too.
		"client_connection_check_interval=2s",
		"log_line_prefix=%m [%p] ",
		"cluster_name=ragd",
	}
}

// spawn starts the postmaster with its output in the log file. It is no child
// in the sense of signals: it has its own process group.
func spawn(install string, lay layout, socket string, own owner) (*process, error) {
	out, err := openLog(lay.log)
	if err != nil {
		return nil, fmt.Errorf("database log: %w", err)
	}
	defer out.Close()
	args := []string{"-D", lay.cluster}
	for _, kv := range settings(socket) {
		args = append(args, "-c", kv)
	}
	cmd := exec.Command(filepath.Join(install, "bin", "postgres"), args...)
	cmd.SysProcAttr = own.sysProcAttr()
	cmd.Env = environment()
	cmd.Dir = lay.data
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start PostgreSQL as %s: %w", own.name, err)
	}
	p := &process{pid: cmd.Process.Pid, cluster: lay.cluster, socket: socket, exited: make(chan struct{})}
	go func() {
		defer close(p.exited)
		_ = cmd.Wait() // how it ended stands in the server's log
	}()
	return p, nil
}

// alive says whether the postmaster still runs.
func (p *process) alive() bool {
	if p.exited == nil {
		return isPostmaster(p.pid, p.cluster)
	}
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// stop asks for a fast shutdown (SIGINT) and, when ctx ends first, for an
// immediate one (SIGQUIT). A server that is already gone is no error.
func (p *process) stop(ctx context.Context, log *slog.Logger) error {
	if err := p.signal(syscall.SIGINT); err != nil {
		return err
	}
	if p.wait(ctx) {
		log.Info("database stopped", "pid", p.pid)
		return nil
	}
	log.Warn("database did not stop in time, told to quit at once", "pid", p.pid)
	if err := p.signal(syscall.SIGQUIT); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), quitTimeout)
	defer cancel()
	if p.wait(ctx) {
		return nil
	}
	return fmt.Errorf("PostgreSQL (process %d) did not stop", p.pid)
}

func (p *process) signal(sig syscall.Signal) error {
	if !p.alive() {
		return nil
	}
	if err := syscall.Kill(p.pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop PostgreSQL (process %d): %w", p.pid, err)
	}
	return nil
}

// wait returns true when the server has ended, false when ctx did first.
func (p *process) wait(ctx context.Context) bool {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for p.alive() {
		select {
		case <-ctx.Done():
			return !p.alive()
		case <-p.exited: // nil, and so never ready, for an adopted server
		case <-tick.C:
		}
	}
	return true
}

// isPostmaster says whether pid is alive and, where /proc tells, works in the
// cluster folder: after a reboot the number may belong to another program.
func isPostmaster(pid int, cluster string) bool {
	if err := syscall.Kill(pid, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return false
	}
	if _, err := os.Stat("/proc/self/cwd"); err != nil {
		return true
	}
	cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	return err == nil && cwd == cluster
}
