package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"ragd/ingest"
	"ragd/internal/answer"
)

// sink keeps what a stream brings.
type sink struct {
	events []string
	text   strings.Builder
}

func (s *sink) Begun(string)             {}
func (s *sink) Queued(p int)             { s.events = append(s.events, fmt.Sprint("queued ", p)) }
func (s *sink) Sources(answer.Sources)   { s.events = append(s.events, "sources") }
func (s *sink) Citation(answer.Citation) { s.events = append(s.events, "citation") }
func (s *sink) Delta(t string)           { s.text.WriteString(t) }

// serve answers every request with a status and a body.
func serve(t *testing.T, status int, body string) *Client {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(srv.Close)
	return New(srv.URL+"/", "")
}

func TestAskReadsTheStream(t *testing.T) {
	c := serve(t, 200, "event: queued\ndata: {\"position\":3}\n\nevent: sources\ndata: {}\n\nevent: delta\ndata: {\"text\":\"가 \"}\n\n"+
		"event: delta\ndata: {\"text\":\"나\"}\n\nevent: citation\ndata: {\"marker\":1}\n\nevent: done\ndata: {\"answer\":\"가 나\"}\n\n")
	var s sink
	res, err := c.Ask(t.Context(), answer.Request{Question: "?"}, &s)
	if err != nil || res.Answer != "가 나" || s.text.String() != "가 나" || strings.Join(s.events, ",") != "queued 3,sources,citation" {
		t.Errorf("%+v, events %v, text %q, %v", res, s.events, s.text.String(), err)
	}
}

func TestErrors(t *testing.T) {
	shape := `{"error":{"code":"over_budget","message":"too long","field":"question"}}`
	for name, c := range map[string]struct {
		status int
		body   string
		want   string
		code   answer.Code
	}{
		"ragd's own shape":   {422, shape, "too long", answer.OverBudget},
		"something else":     {502, "<html>bad gateway</html>", "502", ""},
		"error after events": {200, "event: queued\ndata: {}\n\nevent: error\ndata: " + shape + "\n\n", "too long", answer.OverBudget},
		"stream cut off":     {200, "event: queued\ndata: {}\n\n", "before the answer was done", ""},
		"no events at all":   {200, "", "before the answer was done", ""},
		"not JSON":           {200, "event: delta\ndata: {\n\n", `event "delta"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := serve(t, c.status, c.body).Ask(t.Context(), answer.Request{Question: "?"}, &sink{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q in it", err, c.want)
			}
			var e *answer.Error
			if errors.As(err, &e) != (c.code != "") || (e != nil && e.Code != c.code) {
				t.Errorf("code of %v, want %q", err, c.code)
			}
		})
	}
}

func TestForAddr(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:80": "http://127.0.0.1:80", ":81": "http://127.0.0.1:81", "0.0.0.0:82": "http://127.0.0.1:82",
		"[::]:83": "http://127.0.0.1:83", "[::1]:84": "http://[::1]:84", "host:85": "http://host:85",
	} {
		if got := ForAddr(addr, "").Base(); got != want {
			t.Errorf("%s is reached at %s, want %s", addr, got, want)
		}
	}
}

func TestAliveNeedsARagd(t *testing.T) {
	if !serve(t, 200, `{"status":"alive"}`).Alive(t.Context(), time.Second) {
		t.Error("a ragd is not seen")
	}
	for _, body := range []string{`{"status":"ok"}`, "hello", ""} {
		if serve(t, 200, body).Alive(t.Context(), time.Second) {
			t.Errorf("a server that says %q was taken for a ragd", body)
		}
	}
}

func TestKeyIsSent(t *testing.T) {
	got := make(chan string, 1)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { got <- r.Header.Get("Authorization") }))
	defer srv.Close()
	_ = New(srv.URL, "secret").Ready(t.Context())
	if h := <-got; h != "Bearer secret" {
		t.Errorf("the header is %q", h)
	}
}

// ingestServer runs one ingest that ends when it is stopped by its id. deaf means
// that it ends its connection instead of reporting.
func ingestServer(t *testing.T, deaf bool) *Client {
	t.Helper()
	stopped := make(chan struct{})
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/ingest", func(w http.ResponseWriter, _ *http.Request) {
		line := func(v any) {
			_ = json.NewEncoder(w).Encode(v)
			w.(http.Flusher).Flush()
		}
		line(map[string]string{"id": "run-1"})
		line(map[string]any{"progress": ingest.Progress{Documents: 3, Total: 9}})
		<-stopped
		if !deaf {
			line(map[string]any{"report": ingest.Report{Found: 9, Indexed: 3, Remaining: 6, Interrupted: true}})
		}
	})
	mux.HandleFunc("DELETE /v1/ingest/run-1", func(http.ResponseWriter, *http.Request) { close(stopped) })
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	return New(srv.URL, "")
}

func TestInterruptedIngestStillReports(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	r, err := ingestServer(t, false).Ingest(ctx, []string{"/x"}, "default", false, func(ingest.Progress) { interrupt() })
	if err != nil || !r.Interrupted || r.Indexed != 3 || r.Remaining != 6 {
		t.Errorf("report %+v, %v", r, err)
	}
}

func TestIngestWithoutAReportSaysWhatIsUnknown(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	_, err := ingestServer(t, true).Ingest(ctx, []string{"/x"}, "default", false, func(ingest.Progress) { interrupt() })
	if !errors.Is(err, ErrNoReport) || !strings.Contains(err.Error(), "3 of 9 documents") {
		t.Errorf("got %v", err)
	}
}

func TestIngestErrors(t *testing.T) {
	c := serve(t, 200, `{"id":"a"}`+"\n"+`{"report":{"found":2,"indexed":1},"error":{"code":"unavailable","message":"the database cannot be reached"}}`+"\n")
	r, err := c.Ingest(t.Context(), []string{"/x"}, "default", false, nil)
	var e *answer.Error
	if !errors.As(err, &e) || e.Code != answer.Unavailable || r.Indexed != 1 {
		t.Errorf("report %+v, %v", r, err)
	}
	if _, err := serve(t, 200, "nonsense\n").Ingest(t.Context(), []string{"/x"}, "default", false, nil); err == nil {
		t.Error("nonsense was taken for a report")
	}
}
