package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestStoppedIngestReports ends a run in the three ways there are, and looks for
// the report where the caller can still read it.
func TestStoppedIngestReports(t *testing.T) {
	for name, stop := range map[string]func(t *testing.T, url, id string, stopping chan struct{}){
		"by its id": func(t *testing.T, url, id string, _ chan struct{}) {
			req, err := http.NewRequest(http.MethodDelete, url+"/v1/ingest/"+id, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Errorf("stopping answered %s", resp.Status)
			}
		},
		"by shutdown": func(_ *testing.T, _, _ string, stopping chan struct{}) { close(stopping) },
	} {
		t.Run(name, func(t *testing.T) {
			stopping := make(chan struct{})
			srv := httptest.NewServer(New(Deps{
				Guard: guard(t),
				Asker: &fakeAsker{}, Library: &fakeLibrary{}, Ingester: fakeIngester{block: true}, Metrics: http.NotFoundHandler(),
				Stopping: stopping, Log: slog.New(slog.DiscardHandler),
			}, Config{MaxBodyBytes: 1 << 20, RequestTimeout: time.Minute}))
			defer srv.Close()
			resp, err := http.Post(srv.URL+"/v1/ingest", "application/json", strings.NewReader(`{"paths":["/x"]}`))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			lines := bufio.NewScanner(resp.Body)
			var all []ingestLine
			for lines.Scan() {
				var l ingestLine
				if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
					t.Fatal(err)
				}
				if all = append(all, l); l.Progress != nil {
					stop(t, srv.URL, all[0].ID, stopping)
				}
			}
			last := all[len(all)-1]
			if last.Report == nil || last.Error != nil || !last.Report.Interrupted || last.Report.Indexed != 1 || last.Report.Remaining != 1 {
				t.Errorf("the last line is %+v", last)
			}
		})
	}
}

// TestIngestEndsWithItsClient: a client that hangs up stops the work.
func TestIngestEndsWithItsClient(t *testing.T) {
	done := make(chan struct{})
	h := New(Deps{
		Guard: guard(t),
		Asker: &fakeAsker{}, Library: &fakeLibrary{}, Ingester: fakeIngester{block: true}, Metrics: http.NotFoundHandler(),
		Log: slog.New(slog.DiscardHandler),
	}, Config{MaxBodyBytes: 1 << 20, RequestTimeout: time.Minute})
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		close(done)
	}))
	defer srv.Close()
	ctx, hangUp := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, srv.URL+"/v1/ingest", strings.NewReader(`{"paths":["/x"]}`))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	hangUp()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Error("the ingest went on without its client")
	}
}
