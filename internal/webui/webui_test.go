package webui

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
	"time"

	"ragd/telemetry"
)

func get(t *testing.T, h http.Handler, target string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const prefix = "/debug/latency"

func TestPageLanguage(t *testing.T) {
	for header, want := range map[string]string{
		"": "en", "ko": "ko", "ko-KR,ko;q=0.9,en;q=0.8": "ko", "en-GB,ko;q=0.5": "en", "de": "en", "not a header;;": "en", "fr;q=0.1, ko;q=0.05": "ko",
	} {
		w := get(t, Latency(prefix), prefix, "Accept-Language", header)
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `<html lang="`+want+`">`) {
			t.Errorf("Accept-Language %q: status %d, no page in %s", header, w.Code, want)
		}
	}
}

// Every file that the page and its modules name is served, with a type that a
// browser takes under nosniff, and none of them names another host.
func TestAssetsAreServedAndSelfContained(t *testing.T) {
	h := Latency(prefix)
	reference := regexp.MustCompile(`(?:src|href)="(latency/[^"]+)"|from "\./([^"]+)"`)
	outside := regexp.MustCompile(`(?i)(https?:)?//[a-z0-9.-]+\.[a-z]{2,}`)
	types := map[string]string{".js": "text/javascript", ".css": "text/css"}
	queue, seen := []string{prefix}, map[string]bool{}
	for len(queue) > 0 {
		target := queue[0]
		queue = queue[1:]
		if seen[target] {
			continue
		}
		seen[target] = true
		w := get(t, h, target)
		if w.Code != http.StatusOK {
			t.Errorf("%s: status %d", target, w.Code)
			continue
		}
		if want := types[path.Ext(target)]; !strings.HasPrefix(w.Header().Get("Content-Type"), want) {
			t.Errorf("%s is %q, want %q", target, w.Header().Get("Content-Type"), want)
		}
		if csp := w.Header().Get("Content-Security-Policy"); !strings.Contains(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") {
			t.Errorf("%s: policy %q", target, csp)
		}
		body := strings.ReplaceAll(w.Body.String(), "http://www.w3.org/2000/svg", "")
		if m := outside.FindString(body); m != "" {
			t.Errorf("%s names another host: %s", target, m)
		}
		for _, m := range reference.FindAllStringSubmatch(body, -1) {
			queue = append(queue, prefix+"/"+strings.TrimPrefix(m[1]+m[2], "latency/"))
		}
	}
	if len(seen) < 6 {
		t.Errorf("only %d files were found: %v", len(seen), seen)
	}
	if w := get(t, h, prefix+"/nothing.js"); w.Code != http.StatusNotFound {
		t.Errorf("a file that is not there: status %d", w.Code)
	}
}

// The scripts have no way to turn text into markup.
func TestNoMarkupFromText(t *testing.T) {
	for _, name := range []string{"app.js", "charts.js", "stats.js", "text.js"} {
		data, err := files.ReadFile("latency/" + name)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "DOMParser"} {
			if strings.Contains(string(data), word) {
				t.Errorf("%s uses %s", name, word)
			}
		}
	}
}

// Both languages have the same words, and every word that the page asks for.
func TestWordsAreComplete(t *testing.T) {
	read := func(name string) string {
		data, err := files.ReadFile("latency/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	text := read("text.js")
	keys := func(section string) map[string]bool {
		start := strings.Index(text, "const "+section+" = {")
		end := strings.Index(text[start:], "\n};")
		out := map[string]bool{}
		for _, m := range regexp.MustCompile(`(?m)(?:^  |, |\{ )([a-zA-Z_][a-zA-Z0-9_]*): `).FindAllStringSubmatch(text[start:start+end], -1) {
			out[m[1]] = true
		}
		return out
	}
	en, ko := keys("en"), keys("ko")
	if len(en) < 80 {
		t.Fatalf("only %d English words were found", len(en))
	}
	for k := range en {
		if !ko[k] {
			t.Errorf("%s has no Korean", k)
		}
	}
	for k := range ko {
		if !en[k] {
			t.Errorf("%s has no English", k)
		}
	}
	used := regexp.MustCompile(`data-t="([a-zA-Z0-9_]+)"|\bt\("([a-zA-Z0-9_]+)"\)`)
	for _, m := range used.FindAllStringSubmatch(read("index.html")+read("app.js"), -1) {
		if !en[m[1]+m[2]] {
			t.Errorf("the page asks for %q, which has no words", m[1]+m[2])
		}
	}
}

func newTelemetry(t *testing.T, content bool) *telemetry.Telemetry {
	t.Helper()
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	tel, err := telemetry.New(context.Background(), telemetry.Config{Version: "test", RecordContent: content}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tel.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return tel
}

func finish(tel *telemetry.Telemetry, question string) telemetry.Timings {
	ctx, r := tel.Begin(context.Background(), "POST /ask", time.Now())
	_, end := r.Begin(ctx, telemetry.StageRetrieval, "default")
	time.Sleep(time.Millisecond)
	end(nil)
	timings := r.Timings(time.Now())
	r.End(ctx, timings, telemetry.Summary{ID: "ask_" + question, Outcome: telemetry.Answered, Question: question})
	return timings
}

func data(t *testing.T, tel *telemetry.Telemetry, query string) dataBody {
	t.Helper()
	w := get(t, Data(tel), prefix+"/data"+query)
	var body dataBody
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != http.StatusOK {
		t.Fatalf("status %d: %v: %s", w.Code, err, w.Body)
	}
	return body
}

// What the page gets is what the answer's body said, to the microsecond.
func TestDataEqualsTheBody(t *testing.T) {
	tel := newTelemetry(t, false)
	timings := finish(tel, "secret")
	body := data(t, tel, "")
	if len(body.Records) != 1 {
		t.Fatalf("%d records", len(body.Records))
	}
	// As it was sent: read and written once more, "other" would be the rest of rounded times.
	var sent struct {
		Records []struct{ Timings json.RawMessage }
	}
	if err := json.Unmarshal(get(t, Data(tel), prefix+"/data").Body.Bytes(), &sent); err != nil {
		t.Fatal(err)
	}
	got := sent.Records[0].Timings
	want, err := json.Marshal(timings)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("page %s\nbody %s", got, want)
	}
	if body.Records[0].Question != "" || body.Content {
		t.Error("content was kept without being asked for")
	}
}

func TestDataPages(t *testing.T) {
	tel := newTelemetry(t, true)
	for i := range 3 {
		finish(tel, fmt.Sprint("q", i))
	}
	if body := data(t, tel, "?since=1"); len(body.Records) != 2 || body.Records[0].Seq != 2 || body.Records[0].Question != "q1" || body.More {
		t.Errorf("after 1: %+v", body.Records)
	}
	if body := data(t, tel, "?since=3"); body.Records == nil || len(body.Records) != 0 {
		t.Errorf("after the last: %v", body.Records)
	}
	for _, bad := range []string{"?since=x", "?since=-1", "?since=99999999999999999999999"} {
		if w := get(t, Data(tel), prefix+"/data"+bad); w.Code != http.StatusBadRequest {
			t.Errorf("%s: status %d", bad, w.Code)
		}
	}
}
