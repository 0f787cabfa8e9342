package localpg_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"ragd/internal/localpg"
	"ragd/internal/testenv"
)

// holderEnv makes the test binary a process that starts a server and waits.
const holderEnv = "LOCALPG_TEST_HOLD"

func TestMain(m *testing.M) {
	if data := os.Getenv(holderEnv); data != "" {
		hold(os.Getenv("LOCALPG_TEST_INSTALL"), data)
	}
	code := m.Run()
	if dir, err := seed(); err == nil {
		os.RemoveAll(filepath.Dir(dir))
	}
	os.Exit(code)
}

func hold(install, data string) {
	s, err := localpg.Start(context.Background(), localpg.Config{Install: install, Data: data})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println(s.PID())
	select {}
}

// dataFolder is a temporary data folder that a server user may reach.
func dataFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "localpg-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "pg")
}

// seed is a data folder with a finished cluster, made once; it saves initdb in the
// tests that are about something else.
var seed = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "localpg-seed-")
	return filepath.Join(dir, "pg"), errors.Join(err, os.Chmod(dir, 0o755))
})

// seededFolder is a data folder that holds a cluster already.
func seededFolder(t *testing.T) string {
	t.Helper()
	from, err := seed()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(from); err != nil {
		stop(t, start(t, from))
	}
	data := dataFolder(t)
	if out, err := exec.Command("cp", "-a", from, data).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return data
}

func start(t *testing.T, data string) *localpg.Server {
	t.Helper()
	s, err := localpg.Start(t.Context(), localpg.Config{Install: testenv.Model(t, "postgres"), Data: data})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *localpg.Server) {
	t.Helper()
	if err := s.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

func queryString(t *testing.T, url, sql string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	var s string
	if err := conn.QueryRow(t.Context(), sql).Scan(&s); err != nil {
		t.Fatal(err)
	}
	return s
}

func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(b), ") Z ")
}

func TestStartStop(t *testing.T) {
	data := dataFolder(t)
	s := start(t, data)
	if s.Adopted() {
		t.Error("a fresh server counts as adopted")
	}
	for sql, want := range map[string]string{
		"SHOW listen_addresses":           "",
		"SHOW server_encoding":            "UTF8",
		"SHOW fsync":                      "on",
		"SELECT current_database()::text": "ragd",
		"SELECT datlocprovider::text FROM pg_database WHERE datname = 'ragd'": "b",
	} {
		if got := queryString(t, s.URL(), sql); got != want {
			t.Errorf("%s = %q, want %q", sql, got, want)
		}
	}
	queryString(t, s.URL(), "SELECT lo_from_bytea(4711, 'kept')::text")
	stop(t, s)
	if alive(s.PID()) {
		t.Error("the server lives on after Stop")
	}
	stop(t, s) // again is harmless

	again := start(t, data)
	if got := queryString(t, again.URL(), "SELECT convert_from(lo_get(4711), 'UTF8')"); got != "kept" {
		t.Errorf("after a restart: %q", got)
	}
}

// TestProcess: the server has its own process group (Ctrl-C passes it by) and
// never runs as root.
func TestProcess(t *testing.T) {
	s := start(t, seededFolder(t))
	pgid, err := syscall.Getpgid(s.PID())
	if err != nil || pgid != s.PID() {
		t.Errorf("process group %d (%v), want its own, %d", pgid, err, s.PID())
	}
	info, err := os.Stat(fmt.Sprintf("/proc/%d", s.PID()))
	if err != nil {
		t.Fatal(err)
	}
	if uid := info.Sys().(*syscall.Stat_t).Uid; uid == 0 {
		t.Error("the server runs as root")
	}
}

func TestSecondIsRefused(t *testing.T) {
	data := seededFolder(t)
	start(t, data)
	_, err := localpg.Start(t.Context(), localpg.Config{Install: testenv.Model(t, "postgres"), Data: data})
	if !errors.Is(err, localpg.ErrInUse) || !strings.Contains(err.Error(), strconv.Itoa(os.Getpid())) {
		t.Errorf("second Start: %v, want ErrInUse naming process %d", err, os.Getpid())
	}
}

// TestAdopt: a ragd that is killed leaves its server, the next takes it over.
func TestAdopt(t *testing.T) {
	data := seededFolder(t)
	pid, kill := holder(t, data)
	_, err := localpg.Start(t.Context(), localpg.Config{Install: testenv.Model(t, "postgres"), Data: data})
	if !errors.Is(err, localpg.ErrInUse) {
		t.Fatalf("while the holder lives: %v, want ErrInUse", err)
	}
	kill()
	s := start(t, data)
	if !s.Adopted() || s.PID() != pid {
		t.Errorf("adopted %v, process %d; want the running %d", s.Adopted(), s.PID(), pid)
	}
	queryString(t, s.URL(), "SELECT 'answers'")
	stop(t, s)
	if alive(pid) {
		t.Error("an adopted server lives on after Stop")
	}
}

// TestAfterCrash: holder and server are both killed; the next start recovers.
func TestAfterCrash(t *testing.T) {
	data := seededFolder(t)
	pid, kill := holder(t, data)
	kill()
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	s := start(t, data)
	if s.PID() == pid {
		t.Error("adopted a dead server")
	}
	queryString(t, s.URL(), "SELECT 'answers'")
}

// TestRevived: a server that ends under ragd's hands, by a crash or a clean stop
// from outside, is back within seconds at the same address.
func TestRevived(t *testing.T) {
	s := start(t, seededFolder(t))
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGINT} {
		old := s.PID()
		if err := syscall.Kill(old, sig); err != nil {
			t.Fatal(err)
		}
		deadline := time.Now().Add(time.Minute)
		for s.PID() == old {
			if time.Now().After(deadline) {
				t.Fatalf("after %v: no new server", sig)
			}
			time.Sleep(50 * time.Millisecond)
		}
		queryString(t, s.URL(), "SELECT 'answers'")
	}
	stop(t, s)
	if alive(s.PID()) {
		t.Error("a revived server lives on after Stop")
	}
}

// holder starts a server in another process and returns the server's number and
// a function that kills that process.
func holder(t *testing.T, data string) (pid int, kill func()) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holderEnv+"="+data, "LOCALPG_TEST_INSTALL="+testenv.Model(t, "postgres"))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill = func() {
		cmd.Process.Kill()
		cmd.Wait()
	}
	t.Cleanup(kill)
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if pid, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		t.Fatalf("the holder says %q", line)
	}
	return pid, kill
}

// TestStalePidFile: after a reboot the number in postmaster.pid may be another's.
func TestStalePidFile(t *testing.T) {
	data := seededFolder(t)
	file := filepath.Join(data, "pgdata", "postmaster.pid")
	text := fmt.Sprintf("%d\n%s\n0\n5432\n%s\n\n\n", os.Getpid(), filepath.Join(data, "pgdata"), filepath.Join(data, "run"))
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := start(t, data)
	if s.Adopted() {
		t.Error("adopted a process that is no server")
	}
}

func TestRunningURL(t *testing.T) {
	data := seededFolder(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(data, link); err != nil {
		t.Fatal(err)
	}
	if _, err := localpg.RunningURL(data); !errors.Is(err, localpg.ErrNotRunning) {
		t.Errorf("before the start: %v, want ErrNotRunning", err)
	}
	s := start(t, data)
	for _, dir := range []string{data, link} {
		if url, err := localpg.RunningURL(dir); err != nil || url != s.URL() {
			t.Errorf("%s: %q (%v), want %q", dir, url, err, s.URL())
		}
	}
	stop(t, s)
	if _, err := localpg.RunningURL(data); !errors.Is(err, localpg.ErrNotRunning) {
		t.Errorf("after the stop: %v, want ErrNotRunning", err)
	}
}

func TestUnfinishedInit(t *testing.T) {
	data := dataFolder(t)
	if err := os.MkdirAll(filepath.Join(data, "pgdata.new", "base"), 0o755); err != nil {
		t.Fatal(err)
	}
	queryString(t, start(t, data).URL(), "SELECT 'answers'")
}

func TestLongPath(t *testing.T) {
	data := filepath.Join(dataFolder(t), strings.Repeat("long folder name, ", 8)+"\"데이터\"")
	s := start(t, data)
	queryString(t, s.URL(), "SELECT 'answers'")
	socket := queryString(t, s.URL(), "SHOW unix_socket_directories")
	stop(t, s)
	if _, err := os.Stat(strings.Trim(socket, `"`)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("socket folder %s is left: %v", socket, err)
	}
}

func TestBrokenInstall(t *testing.T) {
	_, err := localpg.Start(t.Context(), localpg.Config{Install: t.TempDir() + "/none", Data: dataFolder(t)})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want a missing folder", err)
	}
}

// TestServerRefuses: when the server cannot start, the error shows its own words
// and the folder is free again.
func TestServerRefuses(t *testing.T) {
	data := seededFolder(t)
	conf := filepath.Join(data, "pgdata", "postgresql.auto.conf")
	if err := os.WriteFile(conf, []byte("no_such_setting = 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := localpg.Start(t.Context(), localpg.Config{Install: testenv.Model(t, "postgres"), Data: data})
	if err == nil || !strings.Contains(err.Error(), "no_such_setting") {
		t.Errorf("%v, want the server's message", err)
	}
	if err := os.WriteFile(conf, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, data)
}

func TestCancelledStart(t *testing.T) {
	data := dataFolder(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := localpg.Start(ctx, localpg.Config{Install: testenv.Model(t, "postgres"), Data: data}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want a cancelled context", err)
	}
	start(t, data)
}

func TestStopInTransaction(t *testing.T) {
	s := start(t, seededFolder(t))
	conn, err := pgx.Connect(t.Context(), s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "BEGIN; CREATE TABLE open (i int)"); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	stop(t, s)
	if took := time.Since(begin); took > 20*time.Second {
		t.Errorf("an open transaction held the stop up for %v", took)
	}
}
