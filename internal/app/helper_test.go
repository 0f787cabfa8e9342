package app

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"ragd/ingest"
	"ragd/internal/answer"
	"ragd/internal/config"
	"ragd/internal/httpapi"
	"ragd/internal/testenv"
	"ragd/telemetry"
)

// logBuffer is a log that may be read while it is written.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// text is the log so far.
func (b *logBuffer) text() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// rows returns the rows "query" of the log that ended in an outcome.
func (b *logBuffer) rows(outcome string) []map[string]any {
	var out []map[string]any
	for line := range strings.Lines(b.text()) {
		var row map[string]any
		if json.Unmarshal([]byte(line), &row) == nil && row["msg"] == "query" && row["outcome"] == outcome {
			out = append(out, row)
		}
	}
	return out
}

// row returns the row of an answered trace.
func (b *logBuffer) row(t *testing.T, traceID string) map[string]any {
	t.Helper()
	for _, row := range b.rows("answered") {
		if row["trace_id"] == traceID {
			return row
		}
	}
	t.Fatalf("no log row of trace %s", traceID)
	return nil
}

// live is an app that answers over HTTP.
type live struct {
	*App
	url   string
	spans *tracetest.InMemoryExporter
	log   *logBuffer
}

// settings are the defaults with the models of the test environment and a fresh
// database.
func settings(t testing.TB) config.Config {
	t.Helper()
	cfg := config.Default()
	cfg.Home = t.TempDir()
	cfg.Models.Answer = testenv.Model(t, cfg.Models.Answer)
	cfg.Models.Embedding = testenv.Model(t, cfg.Models.Embedding)
	cfg.Database.URL = testenv.Database(t).Config().ConnString()
	cfg.Inference.KVCacheTokens = 4096
	return cfg
}

// start opens an app and serves it until the test ends.
func start(t *testing.T, cfg config.Config) *live {
	t.Helper()
	l := &live{spans: tracetest.NewInMemoryExporter(), log: &logBuffer{}}
	log := slog.New(slog.NewJSONHandler(l.log, nil))
	tel, err := telemetry.New(t.Context(), telemetry.Config{Version: "test", SpanExporter: l.spans}, log)
	if err != nil {
		t.Fatal(err)
	}
	if l.App, err = Open(t.Context(), cfg, Options{Version: "test", Log: log, Telemetry: tel}); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(l.Handler())
	l.url = srv.URL
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
		if err := l.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return l
}

// write makes files below a new folder and returns it.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "docs")
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// ingest reads paths and holds the report to its sum.
func (l *live) ingest(t testing.TB, collection string, prune bool, paths ...string) ingest.Report {
	t.Helper()
	r, err := l.Ingest(t.Context(), httpapi.IngestRequest{Paths: paths, Collection: collection, Prune: prune}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if sum := r.Indexed + r.Unchanged + r.Skipped + r.Failed + r.Remaining; sum != r.Found {
		t.Errorf("%d files were found and %d told of: %+v", r.Found, sum, r)
	}
	return r
}

// body is a JSON request.
type body map[string]any

// with returns a copy with more fields.
func (b body) with(more body) body {
	out := body{}
	for _, m := range []body{b, more} {
		for k, v := range m {
			out[k] = v
		}
	}
	return out
}

// post sends a value as JSON, or a string as it is.
func (l *live) post(t testing.TB, ctx context.Context, path string, v any) (*http.Response, error) {
	t.Helper()
	data, raw := v.(string)
	if !raw {
		encoded, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		data = string(encoded)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url+path, strings.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	return http.DefaultClient.Do(req)
}

// call posts and returns status and body.
func (l *live) call(t *testing.T, path string, v any) (int, string) {
	t.Helper()
	resp, err := l.post(t, t.Context(), path, v)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

// asked asks and expects an answer.
func (l *live) asked(t *testing.T, req body) *answer.Result {
	t.Helper()
	status, data := l.call(t, "/ask", req)
	if status != http.StatusOK {
		t.Fatalf("%v: %d %s", req, status, data)
	}
	var res answer.Result
	if err := json.Unmarshal([]byte(data), &res); err != nil {
		t.Fatal(err)
	}
	return &res
}

// refused asks and expects an error of a status and code.
func (l *live) refused(t *testing.T, req any, status int, code answer.Code) (field, message string) {
	t.Helper()
	got, data := l.call(t, "/ask", req)
	var e struct {
		Error struct {
			Code           answer.Code
			Message, Field string
		}
	}
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		t.Fatalf("%v: %d %s: %v", req, got, data, err)
	}
	if got != status || e.Error.Code != code || e.Error.Message == "" {
		t.Errorf("%.300s: %d %.300s, want %d %s", fmt.Sprint(req), got, data, status, code)
	}
	return e.Error.Field, e.Error.Message
}

// event is one Server-Sent Event.
type event struct {
	name string
	data json.RawMessage
}

// stream asks for events and returns them with the text of the deltas joined.
func (l *live) stream(t *testing.T, req body) (events []event, text string) {
	t.Helper()
	status, data := l.call(t, "/ask", req.with(body{"stream": true}))
	if status != http.StatusOK {
		t.Fatalf("%v: %d %s", req, status, data)
	}
	for block := range strings.SplitSeq(strings.TrimSuffix(data, "\n\n"), "\n\n") {
		name, payload, ok := strings.Cut(block, "\ndata: ")
		if !ok || !strings.HasPrefix(name, "event: ") {
			t.Fatalf("event %q", block)
		}
		e := event{strings.TrimPrefix(name, "event: "), json.RawMessage(payload)}
		if e.name == "delta" {
			var d struct{ Text string }
			if err := json.Unmarshal(e.data, &d); err != nil {
				t.Fatal(err)
			}
			text += d.Text
		}
		events = append(events, e)
	}
	return events, text
}

// done is the last event's result.
func done(t *testing.T, events []event) *answer.Result {
	t.Helper()
	last := events[len(events)-1]
	var res answer.Result
	if last.name != "done" {
		t.Fatalf("the last event is %s: %s", last.name, last.data)
	}
	if err := json.Unmarshal(last.data, &res); err != nil {
		t.Fatal(err)
	}
	return &res
}
