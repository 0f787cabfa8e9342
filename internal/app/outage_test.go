package app

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"ragd/internal/httpapi"
	"ragd/internal/localpg"
	"ragd/internal/testenv"
)

// ownPostgres starts a private server that the test may stop and start again.
func ownPostgres(t *testing.T) (start func() *localpg.Server) {
	t.Helper()
	dir, err := os.MkdirTemp("", "ragd-outage-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil { // PostgreSQL may run as another user
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return func() *localpg.Server {
		pg, err := localpg.Start(t.Context(), localpg.Config{Install: testenv.Model(t, "postgres"), Data: filepath.Join(dir, "pg")})
		if err != nil {
			t.Fatal(err)
		}
		return pg
	}
}

// TestDatabaseGoesAndComesBack: without the database questions get 503 soon, the
// server stays alive but not ready, a stream past its retrieval ends well, and
// when the database is back everything works without a restart.
func TestDatabaseGoesAndComesBack(t *testing.T) {
	startPG := ownPostgres(t)
	pg := startPG()
	defer func() { _ = pg.Stop(t.Context()) }()
	cfg := settings(t)
	cfg.Database.URL = pg.URL()
	l := start(t, cfg)
	c := l.notes(t)
	question := body{"question": "Which lamp is violet?", "collection": c, "answer_mode": "extract"}
	l.together(t, question)

	resp, err := l.post(t, t.Context(), "/ask", story(c).with(body{"stream": true, "budget": body{"answer_tokens": 60}}))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() && lines.Text() != "event: delta" {
	}
	if err := pg.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	last := ""
	for lines.Scan() {
		if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
			last = name
		}
	}
	if last != "done" {
		t.Errorf("the stream that had begun ended with %q", last)
	}
	l.downFor(t, question)

	pg = startPG()
	for range 20 {
		l.asked(t, question)
	}
	l.together(t, question)
	if status := l.status(t, "/readyz"); status != http.StatusOK {
		t.Errorf("readyz is %d", status)
	}
	dir := write(t, map[string]string{"later.txt": "The later word is OTTER."})
	if r := l.ingest(t, "later", false, dir); r.Indexed != 1 || len(l.stored(t, "later")) != 1 {
		t.Errorf("ingest after the outage: %+v", r)
	}
}

// together asks ten times side by side.
func (l *live) together(t *testing.T, question body) {
	t.Helper()
	var g errgroup.Group
	for range 10 {
		g.Go(func() error {
			if status, data := l.call(t, "/ask", question); status != http.StatusOK {
				return fmt.Errorf("%d %s", status, data)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		t.Error(err)
	}
}

// downFor checks what can be seen of a server whose database is away.
func (l *live) downFor(t *testing.T, question body) {
	t.Helper()
	for _, streamed := range []bool{false, true} {
		began := time.Now()
		_, message := l.refused(t, question.with(body{"stream": streamed}), 503, "unavailable")
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("503 took %v", took)
		}
		if strings.Contains(message, "SQLSTATE") || strings.Contains(message, l.cfg.Database.URL) || strings.Contains(message, ".s.PGSQL") {
			t.Errorf("the message shows internals: %s", message)
		}
	}
	if alive, ready := l.status(t, "/healthz"), l.status(t, "/readyz"); alive != 200 || ready != 503 {
		t.Errorf("healthz %d, readyz %d", alive, ready)
	}
	dir := write(t, map[string]string{"later.txt": "The later word is OTTER."})
	r, err := l.Ingest(t.Context(), httpapi.IngestRequest{Paths: []string{dir}, Collection: "later"}, nil)
	if err == nil || r.Indexed != 0 {
		t.Errorf("ingest without a database: %+v, %v", r, err)
	}
}

func (l *live) status(t *testing.T, path string) int {
	t.Helper()
	resp, err := http.Get(l.url + path)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	return resp.StatusCode
}

// TestNoDatabaseAtStart says what is wrong within seconds.
func TestNoDatabaseAtStart(t *testing.T) {
	cfg := settings(t)
	for _, url := range []string{"postgres:///ragd?host=" + t.TempDir(), "postgres://127.0.0.1:1/ragd", "nonsense://"} {
		cfg.Database.URL = url
		began := time.Now()
		a, err := Open(t.Context(), cfg, Options{Log: discard()})
		if err == nil {
			t.Fatalf("%s: opened %v", url, a)
		}
		if !strings.Contains(err.Error(), "database") || time.Since(began) > 10*time.Second {
			t.Errorf("%s: after %v: %v", url, time.Since(began), err)
		}
	}
}
