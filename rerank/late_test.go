package rerank

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ragd/ingest"
	"ragd/retrieve"
)

// plain are products of float32 rows; each row of a passage takes its time.
type plain struct {
	rows   []float32
	dim    int
	perRow time.Duration
}

func (p plain) Multiply(dst []float32, values []int8, scales []float32) error {
	n := len(p.rows) / p.dim
	if len(values) != len(scales)*p.dim || len(dst) != len(scales)*n {
		return fmt.Errorf("%d values, %d results for %d rows", len(values), len(dst), len(scales))
	}
	for i, scale := range scales {
		for j := range n {
			dst[i*n+j] = 0
			for k := range p.dim {
				dst[i*n+j] += float32(values[i*p.dim+k]) * scale * p.rows[j*p.dim+k]
			}
		}
		time.Sleep(p.perRow)
	}
	return nil
}

// stored are token states by chunk, which take a time to read.
type stored struct {
	states map[int64]ingest.States
	after  time.Duration
	err    error
	asked  []int64
}

func (s *stored) TokenStates(ctx context.Context, _ string, _ int, chunks []int64) (map[int64]ingest.States, error) {
	s.asked = chunks
	select {
	case <-time.After(s.after):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return s.states, s.err
}

// tokens are states of two values at the angles.
func tokens(angles ...float64) ingest.States {
	var s ingest.States
	for _, a := range angles {
		s.Scales = append(s.Scales, 1.0/100)
		s.Values = append(s.Values, int8(math.Round(100*math.Cos(a))), int8(math.Round(100*math.Sin(a))))
	}
	return s
}

// byDefinition is the score of a chunk for asking, in float64.
func (s *stored) byDefinition(id int64) float64 {
	var mean [2]float64
	n := 0.0
	for _, st := range s.states {
		for i, scale := range st.Scales {
			mean[0] += float64(scale) * float64(st.Values[2*i])
			mean[1] += float64(scale) * float64(st.Values[2*i+1])
			n++
		}
	}
	centred := func(x, y float64) (float64, float64) {
		x, y = x-mean[0]/n, y-mean[1]/n
		length := math.Hypot(x, y)
		return x / length, y / length
	}
	score := 0.0
	for j, weight := range []float64{0.25, 0.75} {
		qx, qy := centred(float64(1-j), float64(j))
		best := math.Inf(-1)
		for i, scale := range s.states[id].Scales {
			px, py := float64(scale)*float64(s.states[id].Values[2*i]), float64(scale)*float64(s.states[id].Values[2*i+1])
			length := math.Sqrt(1 - 2*(px*mean[0]+py*mean[1])/n + (mean[0]*mean[0]+mean[1]*mean[1])/n/n)
			best = max(best, (qx*(px-mean[0]/n)+qy*(py-mean[1]/n))/length)
		}
		score += weight * best
	}
	return score
}

// asking is a question whose tokens lie at 0 and at a right angle, the second being
// twice as long and three times as rare.
var asking = retrieve.Query{Vector: unit(0), States: retrieve.States{Rows: []float32{1, 0, 0, 2}, Weights: []float32{1, 3}}}

func newLate(t *testing.T, source StateSource, timeout, perRow time.Duration, cfg Config) *Reranker {
	t.Helper()
	late, err := NewLate(source, func(rows []float32, dim int) (Products, error) { return plain{rows, dim, perRow}, nil }, timeout)
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(late, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestLateScores(t *testing.T) {
	source := &stored{states: map[int64]ingest.States{
		1: tokens(0, 0.1), // only the first token of the question
		2: tokens(math.Pi/2, 2),
		3: tokens(0.3, math.Pi/2-0.3),
		5: {}, // nothing was kept of it
	}}
	cfg := DefaultConfig()
	cfg.DenseWeight, cfg.Share, cfg.MinChunk = 1, 1, -1 // the scores alone, on the scale of the dense part
	hits := []retrieve.Hit{hit(1, "one", 0.9), hit(2, "two", 0.9), hit(3, "three", 0.9), hit(4, "four", 0.9), hit(5, "five", 0.9)}
	for i, part := range []float32{1, 0.5, 0.25, 0.75, 0} {
		hits[i].Scores.DensePart, hits[i].Scores.Fused = part, part
	}
	ranking, err := newLate(t, source, time.Second, 0, cfg).Rerank(context.Background(), asking, hits)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Report{Scorer: "late-interaction", Candidates: 5, Scored: 3, Missing: 2}); ranking.Report != want {
		t.Errorf("report %+v, want %+v", ranking.Report, want)
	}
	got := map[int64]retrieve.Scores{}
	for i, h := range ranking.Kept {
		got[h.Chunk.ID] = h.Scores
		if h.Scores.RerankRank != i+1 {
			t.Errorf("chunk %d: rank %d at %d", h.Chunk.ID, h.Scores.RerankRank, i+1)
		}
	}
	for _, id := range []int64{1, 2, 3} {
		want := source.byDefinition(id)
		if d := math.Abs(float64(got[id].Late) - want); d > 1e-5 {
			t.Errorf("chunk %d: late %g, want %g", id, got[id].Late, want)
		}
	}
	for id, want := range map[int64]float32{1: 0, 3: 1, 4: 0.75, 5: 0} {
		if got[id].Rerank != want {
			t.Errorf("chunk %d: rerank %g, want %g", id, got[id].Rerank, want)
		}
	}
	if !strings.HasPrefix(ids(ranking.Kept), "3 4 2") || got[4].Late != 0 {
		t.Errorf("order %s, chunk 4 %+v", ids(ranking.Kept), got[4])
	}
	if fmt.Sprint(source.asked) != "[1 2 3 4 5]" {
		t.Errorf("asked for %v", source.asked)
	}
}

// A rerank that would pass its time scores fewer, the best of the search first, and
// says so.
func TestLateKeepsItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := &stored{states: map[int64]ingest.States{}, after: 20 * time.Millisecond}
		for id := int64(1); id <= 12; id++ {
			source.states[id] = tokens(1, 1.1)
		}
		for name, c := range map[string]struct {
			limit        time.Duration // of the request
			timeout      time.Duration
			least, most  int // scored
			took, within time.Duration
		}{
			"enough":        {time.Hour, time.Second, 12, 12, 140 * time.Millisecond, 140 * time.Millisecond},
			"its own time":  {time.Hour, 65 * time.Millisecond, 5, 5, 65 * time.Millisecond, 70 * time.Millisecond},
			"only to read":  {time.Hour, 10 * time.Millisecond, 0, 0, 10 * time.Millisecond, 10 * time.Millisecond},
			"the request's": {65 * time.Millisecond, time.Hour, 0, 0, 65 * time.Millisecond, 70 * time.Millisecond},
		} {
			ctx, cancel := context.WithTimeout(context.Background(), c.limit)
			start := time.Now()
			ranking, err := newLate(t, source, c.timeout, 5*time.Millisecond, DefaultConfig()).Rerank(ctx, asking, cranes(12))
			took := time.Since(start)
			cancel()
			if took < c.took || took > c.within {
				t.Errorf("%s: took %v", name, took)
			}
			if name == "the request's" {
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			rep := ranking.Report
			if err != nil || rep.Scored < c.least || rep.Scored > c.most || (rep.Short == OutOfTime) != (c.most < 12) || rep.Missing != 0 {
				t.Errorf("%s: %+v, %v", name, rep, err)
			}
			for i, h := range ranking.Kept {
				if (h.Scores.Late != 0) != (i < rep.Scored) {
					t.Errorf("%s: late %g at %d of %d", name, h.Scores.Late, i, rep.Scored)
				}
			}
		}
	})
}

func TestLateWithoutScores(t *testing.T) {
	cfg := DefaultConfig()
	source := &stored{}
	ranking, err := newLate(t, source, time.Second, 0, cfg).Rerank(context.Background(), retrieve.Query{Vector: unit(0)}, cranes(3))
	if err != nil || ids(ranking.Kept) != "1 2 3" || ranking.Report.Scored != 0 || source.asked != nil {
		t.Errorf("a question without tokens: %s, %+v, %v", ids(ranking.Kept), ranking.Report, err)
	}
	ranking, err = newLate(t, source, time.Second, 0, cfg).Rerank(context.Background(), asking, cranes(3))
	if err != nil || ids(ranking.Kept) != "1 2 3" || ranking.Report.Missing != 3 {
		t.Errorf("no states at all: %s, %+v, %v", ids(ranking.Kept), ranking.Report, err)
	}
	if _, err = newLate(t, &stored{err: errBroken}, time.Second, 0, cfg).Rerank(context.Background(), asking, cranes(3)); !errors.Is(err, errBroken) {
		t.Errorf("broken: %v", err)
	}
	odd := &stored{states: map[int64]ingest.States{1: {Scales: []float32{1}, Values: []int8{1}}}}
	if _, err = newLate(t, odd, time.Second, 0, cfg).Rerank(context.Background(), asking, cranes(3)); err == nil {
		t.Error("states of another size were accepted")
	}
	if _, err := NewLate(source, nil, 0); err == nil {
		t.Error("a timeout of 0 was accepted")
	}
}
