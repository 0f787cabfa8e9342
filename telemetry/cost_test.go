package telemetry

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// otlpSink takes OTLP over HTTP and forgets it.
func otlpSink(b *testing.B) string {
	b.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		// What cannot be read was cut off by the end of the benchmark.
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	b.Cleanup(srv.Close)
	return srv.URL
}

// oneQuestion is the whole telemetry of a question that runs through every stage.
func oneQuestion(t *Telemetry) {
	ctx, r := t.Begin(context.Background(), "POST /ask", time.Now())
	stage := func(ctx context.Context, s Stage, subject string) func(error) {
		_, end := r.Begin(ctx, s, subject)
		return end
	}
	stage(ctx, StagePack, "")(nil)
	inside, endRetrieval := r.Begin(ctx, StageRetrieval, "default")
	stage(inside, StageEmbed, "embedder")(nil)
	stage(inside, StageDense, "")(nil)
	stage(inside, StageLexical, "")(nil)
	stage(inside, StageFuse, "")(nil)
	endRetrieval(nil)
	stage(ctx, StageRerank, "best-sentence")(nil)
	stage(ctx, StagePack, "")(nil)
	chat, endChat := r.Chat(ctx, "model", Server{})
	stage(chat, StageRender, "")(nil)
	at := time.Now()
	r.Generation(chat, EngineTimes{
		Submitted: at, Scheduled: at.Add(time.Millisecond), FirstToken: at.Add(3 * time.Millisecond), Last: at.Add(9 * time.Millisecond), OutputTokens: 40,
	}, at)
	r.FirstWrite(at.Add(3 * time.Millisecond))
	endChat(Call{}, nil)
	r.End(ctx, r.Timings(at.Add(10*time.Millisecond)), Summary{
		ID: "ask_x", Collection: "default", Model: "model", Outcome: Answered, AnswerKind: "generated", FinishReason: "stop",
		InputTokens: 700, OutputTokens: 40, CachedTokens: 64, RetrievedChunks: 20, UsedChunks: 6,
		Prompt:  PromptTokens{Template: 90, Question: 10, Evidence: []int{100, 100, 100, 100, 100, 100}},
		Dropped: []Dropped{{"duplicate", 4, 500}, {"max_chunks", 10, 1900}},
	})
}

// BenchmarkRequest is what telemetry costs a request: 14 spans, about 20 metric
// points, the log row and the record for the latency page.
//
//	go test -run '^$' -bench Request -cpu 1,2 ./telemetry
func BenchmarkRequest(b *testing.B) {
	for _, c := range []struct {
		name, exporter, sampler string
		// pace is the time between requests; 0 saturates the exporter.
		pace time.Duration
	}{
		{"never_sampled", "none", "always_off", 0},
		{"no_export", "none", "always_on", 0},
		{"otlp_saturated", "otlp", "always_on", 0},
		{"otlp_paced_200_a_second", "otlp", "always_on", 5 * time.Millisecond},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.Setenv("OTEL_TRACES_EXPORTER", c.exporter)
			b.Setenv("OTEL_METRICS_EXPORTER", "none")
			b.Setenv("OTEL_TRACES_SAMPLER", c.sampler)
			b.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
			b.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", otlpSink(b))
			t, err := New(context.Background(), Config{Version: "bench"}, slog.New(slog.NewJSONHandler(io.Discard, nil)))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			busy := time.Duration(0)
			for b.Loop() {
				started := time.Now()
				oneQuestion(t)
				busy += time.Since(started)
				time.Sleep(c.pace)
			}
			b.ReportMetric(float64(busy.Microseconds())/float64(b.N), "µs/request")
			if err := t.Shutdown(context.Background()); err != nil {
				b.Fatal(err)
			}
			if n := t.flow.overflow.Load() + t.flow.failed.Load(); n > 0 {
				b.ReportMetric(float64(n)/float64(b.N), "spans-lost/request")
			}
		})
	}
}
