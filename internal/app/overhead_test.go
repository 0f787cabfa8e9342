//go:build timing

package app

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"testing"
	"time"

	"ragd/internal/testenv"
)

const (
	overheadPace   = time.Second / 50 // between searches, or as soon as the one before is answered
	overheadBlock  = 5                // searches of one app in a row
	overheadPairs  = 10               // blocks of either app in a round
	overheadRounds = 10
	overheadStarts = 6 // of both apps
)

// BenchmarkTelemetry is what all telemetry costs a search: spans by OTLP, those of HTTP and of the
// database, metrics, log rows, and the page's records. Two apps that differ in
// nothing else, each a process of its own, are asked in turn, five searches each, 50 a
// second. Processor time is a process's own, so what an app exports later is its
// own too, and neither the sink nor other programs count; latencies are wall time. Two processes of the same
// program differ by as much as what is measured, so both are started anew several times.
// It tells the mean difference of rounds of 50 searches, without the fifth of the rounds at either
// end, and the interval that holds 95 % of such means when starts and their rounds are drawn anew.
// Run it with -benchtime 1x: make bench-telemetry.
func BenchmarkTelemetry(b *testing.B) {
	sink := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }))
	defer sink.Close()
	cfg, pool := settings(b), testenv.Database(b)
	cfg.Database.URL = pool.Config().ConnString()
	vars := []string{
		"OTEL_TRACES_EXPORTER=otlp", "OTEL_METRICS_EXPORTER=none", "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf", "OTEL_EXPORTER_OTLP_ENDPOINT=" + sink.URL,
	}
	for b.Loop() {
		var without, more starts
		for range overheadStarts {
			on, off := serveApart(b, pool, overheadApp{Config: cfg}, vars...), serveApart(b, pool, overheadApp{Config: cfg, Off: true})
			var a, d rounds
			for range overheadRounds {
				with, plain := overheadRound(b, on, off)
				a = append(a, plain)
				d = append(d, round{with.wall - plain.wall, with.ragd - plain.ragd, with.postgres - plain.postgres})
			}
			without, more = append(without, a), append(more, d)
			b.Logf("%.0f µs of processor time more", d.middle(func(r round) float64 { return r.ragd + r.postgres }))
			on.stop()
			off.stop()
		}
		for _, figure := range []struct {
			name string
			of   func(round) float64
		}{
			{"wall", func(r round) float64 { return r.wall }},
			{"ragd-cpu", func(r round) float64 { return r.ragd }},
			{"postgres-cpu", func(r round) float64 { return r.postgres }},
		} {
			low, high := more.between(figure.of)
			b.ReportMetric(without.all().middle(figure.of), "µs-"+figure.name+"-off/search")
			b.ReportMetric(more.all().middle(figure.of), "µs-"+figure.name+"-more/search")
			b.ReportMetric(low, "µs-"+figure.name+"-more-low")
			b.ReportMetric(high, "µs-"+figure.name+"-more-high")
		}
		cpu := more.all().middle(func(r round) float64 { return r.ragd + r.postgres })
		b.ReportMetric(100*cpu/float64(overheadPace.Microseconds())/float64(runtime.NumCPU()), "%-of-machine")
	}
}

// round is a median latency and the processor time of a search, in microseconds.
type round struct{ wall, ragd, postgres float64 }

type rounds []round

// starts are the rounds by the processes that they ran on.
type starts []rounds

func (s starts) all() rounds { return slices.Concat(s...) }

// overheadRound asks both apps in turn.
func overheadRound(b *testing.B, on, off *served) (with, without round) {
	b.Helper()
	apps, wall, began := [2]*served{on, off}, [2][]float64{}, [2]spent{}
	for i, s := range apps {
		began[i] = s.spent(b)
	}
	for pair := range overheadPairs {
		for n := range apps {
			i := (pair + n) % len(apps)
			wall[i] = append(wall[i], apps[i].search(b)...)
		}
	}
	var out [2]round
	for i, s := range apps {
		now, n := s.spent(b), float64(len(wall[i]))
		out[i] = round{medianOf(wall[i]), (now.ragd - began[i].ragd) / n, (now.postgres - began[i].postgres) / n}
	}
	return out[0], out[1]
}

// search asks one block and returns how long each took, in microseconds.
func (s *served) search(b *testing.B) (took []float64) {
	b.Helper()
	for n := range overheadBlock {
		began := time.Now()
		resp, err := s.post(b, b.Context(), "/v1/search", body{"query": fmt.Sprintf("How many numbers does vector %d have?", n)})
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
	return took
}

// warm fills what fills with use: connections, prepared statements, the heap.
func (s *served) warm(b *testing.B) {
	b.Helper()
	for range 20 {
		s.search(b)
	}
}

// middle is the mean without the fifth at either end.
func (r rounds) middle(of func(round) float64) float64 {
	v := make([]float64, len(r))
	for i := range r {
		v[i] = of(r[i])
	}
	slices.Sort(v)
	v = v[len(v)/5 : len(v)-len(v)/5]
	sum := 0.0
	for _, x := range v {
		sum += x
	}
	return sum / float64(len(v))
}

// between is the interval that holds 95 % of the middles of starts, and rounds of each,
// drawn with replacement: the percentile bootstrap of two stages.
func (s starts) between(of func(round) float64) (low, high float64) {
	rng := rand.New(rand.NewPCG(1, 2))
	const draws = 2000
	middles, drawn := make([]float64, draws), make(rounds, 0, len(s.all()))
	for i := range middles {
		drawn = drawn[:0]
		for range s {
			its := s[rng.IntN(len(s))]
			for range its {
				drawn = append(drawn, its[rng.IntN(len(its))])
			}
		}
		middles[i] = drawn.middle(of)
	}
	slices.Sort(middles)
	return middles[draws/40], middles[draws-1-draws/40]
}

func medianOf(v []float64) float64 {
	v = slices.Clone(v)
	slices.Sort(v)
	return v[len(v)/2]
}
