package telemetry

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// scrape reads the metrics page as OpenMetrics.
func scrape(t *testing.T, tel *Telemetry) string {
	t.Helper()
	req := httptest.NewRequest(http.MethodGet, "/metrics", nil)
	req.Header.Set("Accept", "application/openmetrics-text; version=1.0.0")
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, req)
	data, err := io.ReadAll(w.Result().Body)
	if err != nil {
		t.Fatal(err)
	}
	if kind := w.Result().Header.Get("Content-Type"); !strings.HasPrefix(kind, "application/openmetrics-text") {
		t.Errorf("content type %q", kind)
	}
	if !strings.HasSuffix(string(data), "# EOF\n") {
		t.Errorf("the page does not end as OpenMetrics does: %q", data[max(0, len(data)-80):])
	}
	return string(data)
}

// TestMetricsPage: each stage has a histogram in seconds, and labels stay few.
func TestMetricsPage(t *testing.T) {
	r := newRig(t, false)
	oneQuestion(r.Telemetry)
	page := scrape(t, r.Telemetry)
	for _, want := range []string{
		`ragd_stage_duration_seconds_bucket{stage="prefill",le="0.002"} 1`,
		`ragd_stage_duration_seconds_bucket{stage="prefill",le="0.001"} 0`,
		`ragd_stage_duration_seconds_count{stage="decode"} 1`,
		"ragd_ttft_seconds_count", "ragd_request_duration_seconds_count", "gen_ai_server_time_to_first_token_seconds_count",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s", want)
		}
	}
	for _, unwanted := range []string{"ask_x", "trace_id=\"\""} {
		for line := range strings.Lines(page) {
			labels, _, _ := strings.Cut(line, " # ") // what follows is the exemplar
			if strings.Contains(labels, unwanted) {
				t.Errorf("a label holds %q: %s", unwanted, line)
			}
		}
	}
}

func TestStagesThatDidNotRunAreNoSamples(t *testing.T) {
	r := newRig(t, false)
	ctx, req := r.Begin(t.Context(), "POST /ask", time.Now())
	req.End(ctx, req.Timings(time.Now()), Summary{Outcome: Rejected})
	page := scrape(t, r.Telemetry)
	for _, unwanted := range []string{`stage="prefill"`, "ragd_ttft_seconds_count", "gen_ai_server"} {
		if strings.Contains(page, unwanted) {
			t.Errorf("a request that was refused has a sample of %s", unwanted)
		}
	}
}

func TestWatchEngine(t *testing.T) {
	r := newRig(t, false)
	if err := r.WatchEngine(func() EngineStats { return EngineStats{Queued: 3, Running: 2, BlocksUsed: 40, BlocksFree: 60} }); err != nil {
		t.Fatal(err)
	}
	page := scrape(t, r.Telemetry)
	for _, want := range []string{"ragd_queue_depth 3", "ragd_requests_running 2", "ragd_kv_blocks_used 40", "ragd_kv_blocks_free 60"} {
		if !strings.Contains(page, want+"\n") && !strings.Contains(page, want+".0\n") {
			t.Errorf("no %q", want)
		}
	}
}
