package httpapi

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// The page and its files are open, for they hold no data; the data needs a key.
func TestLatencyPageIsOpenAndItsDataIsNot(t *testing.T) {
	says := func(word string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, word) })
	}
	srv := httptest.NewServer(New(Deps{
		Guard: guard(t, "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b"), Asker: &fakeAsker{}, Library: &fakeLibrary{}, Ingester: fakeIngester{}, Metrics: says("metrics"), Latency: says("page"), LatencyData: says("data"),
		Ready: func(context.Context) error { return nil }, Log: slog.New(slog.DiscardHandler),
	}, Config{MaxBodyBytes: 1 << 20, RequestTimeout: time.Minute}))
	t.Cleanup(srv.Close)
	for _, c := range []struct {
		path, key string
		status    int
		body      string
	}{
		{"/debug/latency", "", 200, "page"},
		{"/debug/latency/app.js", "", 200, "page"},
		{"/debug/latency/data", "", 401, ""},
		{"/debug/latency/data", "wrong", 401, ""},
		{"/debug/latency/data", "secret", 200, "data"},
	} {
		req, err := http.NewRequest(http.MethodGet, srv.URL+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.key != "" {
			req.Header.Set("Authorization", "Bearer "+c.key)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != c.status || c.body != "" && string(body) != c.body {
			t.Errorf("%s with key %q: %d %s", c.path, c.key, resp.StatusCode, body)
		}
	}
}
