//go:build timing

package app

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sys/unix"

	"ragd/internal/config"
	"ragd/telemetry"
)

// served is an app in a process of its own, so that its processor time and that of
// its sessions in PostgreSQL are its own.
type served struct {
	live
	pid      int
	stop     func()
	sessions []int
}

// overheadApp tells a process of the test binary which app it is.
type overheadApp struct {
	Config config.Config
	Off    bool
}

const asOverheadApp = "RAGD_TEST_OVERHEAD_APP"

// TestOverheadApp is not a test but the process that BenchmarkTelemetry measures: it
// serves until its standard input ends.
func TestOverheadApp(t *testing.T) {
	var its overheadApp
	if os.Getenv(asOverheadApp) == "" {
		t.Skip("is started by BenchmarkTelemetry")
	}
	if err := json.Unmarshal([]byte(os.Getenv(asOverheadApp)), &its); err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.NewJSONHandler(io.Discard, nil))
	tel, err := telemetry.New(t.Context(), telemetry.Config{Version: "bench", Off: its.Off}, log)
	if err != nil {
		t.Fatal(err)
	}
	a, err := Open(t.Context(), its.Config, Options{Version: "bench", Log: log, Telemetry: tel})
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(a.Handler())
	l := &live{App: a, url: srv.URL}
	l.ingest(t, "default", false, filepath.Join("..", "..", "examples", "corpus"))
	fmt.Println("serves " + srv.URL)
	_, _ = io.Copy(io.Discard, os.Stdin)
	srv.Close()
	_ = a.Close()
	_ = tel.Shutdown(context.Background())
}

// serveApart starts an app as a process of its own; its environment gets vars.
func serveApart(b *testing.B, pool *pgxpool.Pool, its overheadApp, vars ...string) *served {
	b.Helper()
	name := fmt.Sprintf("overhead-%v", its.Off)
	its.Config.Home = b.TempDir()
	its.Config.Database.URL += map[bool]string{true: "&", false: "?"}[strings.Contains(its.Config.Database.URL, "?")] + "application_name=" + name
	data, err := json.Marshal(its)
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestOverheadApp$", "-test.timeout", "0")
	cmd.Env = append(os.Environ(), append(vars, asOverheadApp+"="+string(data))...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	s := &served{pid: cmd.Process.Pid}
	s.stop = sync.OnceFunc(func() {
		in.Close()
		_, _ = io.Copy(io.Discard, out)
		if err := cmd.Wait(); err != nil {
			b.Errorf("the app ended: %v", err)
		}
	})
	b.Cleanup(s.stop)
	for lines := bufio.NewScanner(out); s.url == ""; {
		if !lines.Scan() {
			b.Fatalf("the app ended: %v", lines.Err())
		}
		s.url, _ = strings.CutPrefix(lines.Text(), "serves ")
		if !strings.HasPrefix(s.url, "http") {
			s.url = ""
		}
	}
	s.warm(b)
	rows, err := pool.Query(b.Context(), "SELECT pid FROM pg_stat_activity WHERE application_name = $1", name)
	if err != nil {
		b.Fatal(err)
	}
	for rows.Next() {
		var pid int
		if err := rows.Scan(&pid); err != nil {
			b.Fatal(err)
		}
		s.sessions = append(s.sessions, pid)
	}
	if rows.Err() != nil || len(s.sessions) == 0 {
		b.Fatalf("no sessions of the app in PostgreSQL: %v", rows.Err())
	}
	return s
}

// spent is processor time in microseconds.
type spent struct{ ragd, postgres float64 }

func (s *served) spent(b *testing.B) spent {
	b.Helper()
	out := spent{ragd: processorTime(b, s.pid)}
	for _, pid := range s.sessions {
		out.postgres += processorTime(b, pid)
	}
	return out
}

// processorTime is that of all threads of a process in microseconds, read from its
// clock: clock_getcpuclockid(3) has the number of that.
func processorTime(b *testing.B, pid int) float64 {
	b.Helper()
	const schedulerClock = 2
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|schedulerClock), &t); err != nil {
		b.Fatalf("processor time of process %d: %v", pid, err)
	}
	return float64(t.Nano()) / 1e3
}
