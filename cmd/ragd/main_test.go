package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"ragd/internal/config"
	"ragd/internal/testenv"
)

// asCommand makes the test binary behave as ragd.
const asCommand = "RAGD_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		os.Exit(run(os.Args[1:]))
	}
	os.Exit(m.Run())
}

// env is what the commands of a test run with.
type env struct {
	vars []string
	pool *pgxpool.Pool
}

// bare is an environment with an empty data folder, where no server answers.
func bare(t *testing.T) *env {
	t.Helper()
	return &env{vars: []string{"RAGD_HOME=" + t.TempDir(), "RAGD_SERVER_ADDR=127.0.0.1:1"}}
}

// furnished has models and a database.
func furnished(t *testing.T) *env {
	t.Helper()
	e := bare(t)
	e.pool = testenv.Database(t)
	models := config.Default().Models
	e.vars = append(e.vars,
		"RAGD_DATABASE_URL="+e.pool.Config().ConnString(),
		"RAGD_MODELS_ANSWER="+testenv.Model(t, models.Answer),
		"RAGD_MODELS_EMBEDDING="+testenv.Model(t, models.Embedding),
		"RAGD_INFERENCE_KV_CACHE_TOKENS=4096",
	)
	return e
}

func (e *env) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(append(os.Environ(), asCommand+"=1"), e.vars...)
	return cmd
}

// ragd runs a command to its end.
func (e *env) ragd(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := e.command(t, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

// done runs a command that must succeed.
func (e *env) done(t *testing.T, args ...string) string {
	t.Helper()
	code, out, errs := e.ragd(t, args...)
	if code != exitDone {
		t.Fatalf("ragd %s: exit %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// serve starts a server, lets later commands find it, and returns its process.
func (e *env) serve(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := e.command(t, "serve", "--addr", "127.0.0.1:0")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the server says %q, %v\n%s", line, err, log.String())
	}
	addr := strings.TrimSpace(line[strings.Index(line, "http://")+len("http://"):])
	e.vars = append(e.vars, "RAGD_SERVER_ADDR="+addr)
	return cmd
}

// corpus writes n short documents and returns their folder.
func corpus(t *testing.T, n int) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "corpus")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		text := fmt.Sprintf("# Room %d\n\nThe key of room %d hangs on hook K-%03d. ", i, i, i) +
			strings.Repeat(fmt.Sprintf("Room %d has a window to the garden and a table for %d guests. ", i, i), 20)
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("room%03d.md", i)), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return v
}

// interrupt sends Ctrl-C as soon as documents were stored, and returns how the
// command ended.
func (e *env) interrupt(t *testing.T, collection string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := e.command(t, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() // the exit code is looked at below
	}()
	for e.documents(t, collection) == 0 {
		select {
		case <-ended:
			t.Fatalf("it ended before it was interrupted: %s%s", out.String(), errs.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatal("it did not end")
	}
	return cmd.ProcessState.ExitCode(), out.String(), errs.String()
}

func (e *env) documents(t *testing.T, collection string) (n int) {
	t.Helper()
	err := e.pool.QueryRow(t.Context(), `SELECT count(*) FROM ragd.documents d JOIN ragd.collections c ON c.id = d.collection_id WHERE c.name = $1`, collection).Scan(&n)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
