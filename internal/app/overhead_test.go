//go:build timing

package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"ragd/internal/config"
	"ragd/telemetry"
)

const (
	overheadPace   = time.Second / 50 // between searches, or as soon as the one before is answered
	overheadBlock  = 25               // searches
	overheadRounds = 60
)

// BenchmarkTelemetry is what all telemetry costs a search, with it on and off in turn
// every half a second at 50 searches a second: spans by OTLP to a sink in this process, which is part of
// the cost, those of HTTP and of the database, metrics, log rows, and the page's
// records. CPU is that of this process, so it does not count other programs' work;
// latencies do. Run it with -benchtime 1x: make bench-telemetry.
func BenchmarkTelemetry(b *testing.B) {
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer sink.Close()
	for name, value := range map[string]string{
		"OTEL_TRACES_EXPORTER": "otlp", "OTEL_METRICS_EXPORTER": "none", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf", "OTEL_EXPORTER_OTLP_ENDPOINT": sink.URL,
		"OTEL_BSP_SCHEDULE_DELAY": "500",
	} {
		b.Setenv(name, value)
	}
	cfg := settings(b)
	on, off := overheadServer(b, cfg, false), overheadServer(b, cfg, true)
	for b.Loop() {
		var wall, cpu, plain, plainCPU []float64
		for round := range overheadRounds {
			first, second := on, off
			if round%2 == 1 {
				first, second = off, on
			}
			with, without := first.search(b), second.search(b)
			if round%2 == 1 {
				with, without = without, with
			}
			wall, cpu = append(wall, with.wall-without.wall), append(cpu, with.cpu-without.cpu)
			plain, plainCPU = append(plain, without.wall), append(plainCPU, without.cpu)
		}
		b.ReportMetric(medianOf(plain), "µs-off/search")
		b.ReportMetric(medianOf(wall), "µs-more/search")
		b.ReportMetric(medianOf(plainCPU), "µs-cpu-off/search")
		b.ReportMetric(medianOf(cpu), "µs-cpu-more/search")
		b.ReportMetric(quartiles(cpu), "µs-cpu-more-spread")
		b.ReportMetric(100*medianOf(cpu)/float64(overheadPace.Microseconds())/float64(runtime.NumCPU()), "%-of-machine")
	}
}

// searched is an app of its own.
type searched struct {
	url   string
	flush func(context.Context) error
}

// overheadServer is an app of its own on the same database, with some documents.
func overheadServer(b *testing.B, cfg config.Config, off bool) searched {
	b.Helper()
	log := slog.New(slog.NewJSONHandler(io.Discard, nil))
	tel, err := telemetry.New(b.Context(), telemetry.Config{Version: "bench", Off: off}, log)
	if err != nil {
		b.Fatal(err)
	}
	a, err := Open(b.Context(), cfg, Options{Version: "bench", Log: log, Telemetry: tel})
	if err != nil {
		b.Fatal(err)
	}
	srv := httptest.NewServer(a.Handler())
	b.Cleanup(func() {
		srv.Close()
		_ = a.Close()
		_ = tel.Shutdown(b.Context())
	})
	l := &live{App: a, url: srv.URL}
	l.ingest(b, "default", false, filepath.Join("..", "..", "examples", "corpus"))
	flush := func(context.Context) error { return nil }
	if tracers, ok := tel.TracerProvider().(interface{ ForceFlush(context.Context) error }); ok {
		flush = tracers.ForceFlush
	}
	return searched{srv.URL, flush}
}

// block is a median latency and the mean CPU of a search, in microseconds.
type block struct{ wall, cpu float64 }

// search runs one block; what it exports leaves within it.
func (s searched) search(b *testing.B) block {
	b.Helper()
	l := &live{url: s.url}
	var took []float64
	before := processCPU(b)
	for n := range overheadBlock {
		began := time.Now()
		resp, err := l.post(b, b.Context(), "/v1/search", body{"query": fmt.Sprintf("How many numbers does vector %d have?", n)})
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			b.Fatalf("status %d", resp.StatusCode)
		}
		took = append(took, float64(time.Since(began).Microseconds()))
		time.Sleep(time.Until(began.Add(overheadPace)))
	}
	if err := s.flush(b.Context()); err != nil {
		b.Error(err)
	}
	return block{medianOf(took), (processCPU(b) - before) / overheadBlock}
}

// quartiles is half of the range that holds the middle half.
func quartiles(v []float64) float64 {
	v = slices.Sorted(slices.Values(v))
	return (v[len(v)*3/4] - v[len(v)/4]) / 2
}

func medianOf(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}

// processCPU is the processor time of this process in microseconds.
func processCPU(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e3
}
