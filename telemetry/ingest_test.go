package telemetry

import (
	"context"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func quietTelemetry(t *testing.T) *Telemetry {
	t.Helper()
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	tel, err := New(context.Background(), Config{Version: "test"}, slog.New(slog.DiscardHandler))
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

// samples is what /metrics says.
func samples(t *testing.T, tel *Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	body, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func wantLines(t *testing.T, text string, lines ...string) {
	t.Helper()
	for _, l := range lines {
		if !strings.Contains(text, "\n"+l+"\n") {
			t.Errorf("no sample %q", l)
		}
	}
}

func TestIngestCountsAndLags(t *testing.T) {
	tel, ctx := quietTelemetry(t), context.Background()
	first, second := tel.BeginIngest(), tel.BeginIngest()
	first.Progress(ctx, IngestProgress{Found: 10})
	second.Progress(ctx, IngestProgress{Settled: 2, Found: 5, Bytes: 100, Chunks: 7, Tokens: 900})
	second.Progress(ctx, IngestProgress{Settled: 3, Found: 5, Bytes: 150, Chunks: 9, Tokens: 1000})
	wantLines(t, samples(t, tel), "ragd_ingest_pending 12", "ragd_ingest_bytes_total 150", "ragd_ingest_chunks_total 9", "ragd_ingest_tokens_total 1000")
	if _, lag := tel.ingest.backlog(first.started.Add(time.Minute)); lag != time.Minute {
		t.Errorf("lag %v, want that of the older run", lag)
	}
	first.End(ctx, IngestOutcome{Indexed: 8, Failed: 2})
	second.Progress(ctx, IngestProgress{Settled: 5, Found: 5, Bytes: 150, Chunks: 9, Tokens: 1000})
	if n, lag := tel.ingest.backlog(time.Now()); n != 0 || lag != 0 {
		t.Errorf("all is settled: %d pending, lag %v", n, lag)
	}
	second.End(ctx, IngestOutcome{Indexed: 5})
	wantLines(t, samples(t, tel), `ragd_ingest_documents_total{status="indexed"} 13`, `ragd_ingest_documents_total{status="failed"} 2`,
		"ragd_ingest_pending 0", "ragd_ingest_lag_seconds 0", "ragd_ingest_duration_seconds_count 2")
}

func TestDroppedTokensByReason(t *testing.T) {
	tel := quietTelemetry(t)
	for range 2 {
		ctx, r := tel.Begin(context.Background(), "POST /ask", time.Now())
		r.End(ctx, r.Timings(time.Now()), Summary{Outcome: Answered, Dropped: []Dropped{{"duplicate", 1, 40}, {"over_budget", 3, 500}}})
	}
	wantLines(t, samples(t, tel), `ragd_tokens_dropped_total{reason="duplicate"} 80`, `ragd_tokens_dropped_total{reason="over_budget"} 1000`,
		`ragd_chunks_dropped_total{reason="over_budget"} 6`, "ragd_requests_active 0")
}

// The engine's figures, and the bandwidth that follows from two of them.
func TestEngineGauges(t *testing.T) {
	tel := quietTelemetry(t)
	stats := EngineStats{Queued: 3, Running: 2, BlocksUsed: 10, BlocksFree: 6, PrefixHitTokens: 99, Preemptions: 4, RecomputedTokens: 77, PrefillRate: 250}
	if err := tel.WatchEngine(func() EngineStats { return stats }); err != nil {
		t.Fatal(err)
	}
	wantLines(t, samples(t, tel), "ragd_queue_depth 3", "ragd_requests_running 2", "ragd_kv_blocks_used 10", "ragd_kv_blocks_free 6",
		"ragd_prefix_hit_tokens_total 99", "ragd_preemptions_total 4", "ragd_tokens_recomputed_total 77",
		"ragd_prefill_rate_per_second 250", "ragd_model_bandwidth_bytes_per_second 0")
	stats.DecodeStep, stats.Weights = 10*time.Millisecond, 1000
	wantLines(t, samples(t, tel), "ragd_decode_step_seconds 0.01", "ragd_model_bandwidth_bytes_per_second 100000")
}
