package eval

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"ragd/retrieve"
	"ragd/retrieve/vector"
)

// Filtered is the search under a filter.
type Filtered struct {
	// Keeps names the filter by what it keeps; Matching chunks pass it.
	Keeps    string `json:"keeps"`
	Matching int64  `json:"matching"`
	// Exact says that the dense side compares all that pass; Plan is PostgreSQL's.
	Exact bool   `json:"exact"`
	Plan  string `json:"plan"`
	Percentile
}

// Explainer tells how the dense side would answer.
type Explainer interface {
	Explain(ctx context.Context, q retrieve.Query) ([]vector.Way, error)
}

// keep is a filter of a grown corpus; see metadata.
type keep struct {
	keeps string
	f     retrieve.Filters
}

var keeps = []keep{
	{"50 %", retrieve.Filters{Metadata: map[string][]string{"half": {"1"}}}},
	{"1 %", retrieve.Filters{Metadata: map[string][]string{"hundredth": {"1"}}}},
	{"0.01 %", retrieve.Filters{Metadata: map[string][]string{"rare": {"yes"}}}},
	{"1 chunk", retrieve.Filters{PathPrefix: "0"}},
}

// metadata is what the filters look at, of document i in a corpus of n chunks.
func metadata(n, i int) map[string]any {
	m := map[string]any{"half": strconv.Itoa(i % 2), "hundredth": strconv.Itoa(i % 100)}
	if i > 0 && i <= max(1, n/10_000/grownChunks) {
		m["rare"] = "yes"
	}
	return m
}

// filtered times the fused search under each filter. Fewer hits than min(k, matches)
// are an error.
func (g *grower) filtered(ctx context.Context) ([]Filtered, error) {
	dense, ok := g.Dense.(Explainer)
	if !ok || !slices.Contains(g.cfg.Pipelines, Fused) {
		return nil, nil
	}
	var out []Filtered
	for _, s := range keeps {
		var spent stopwatch
		q := g.query(0, &spent)
		q.Filters, q.Limit = s.f, g.Reranked
		ways, err := dense.Explain(ctx, q)
		if err != nil {
			return nil, err
		}
		f := Filtered{Keeps: s.keeps}
		for _, w := range ways {
			f.Matching, f.Exact, f.Plan = f.Matching+w.Chunks, w.Exact, w.Plan
		}
		if f.Percentile, err = g.timeFiltered(ctx, s, min(int(f.Matching), q.Limit)); err != nil {
			return nil, fmt.Errorf("filter that keeps %s: %w", s.keeps, err)
		}
		out = append(out, f)
	}
	return out, nil
}

func (g *grower) timeFiltered(ctx context.Context, s keep, want int) (Percentile, error) {
	return g.measure(ctx, Fused, func(ctx context.Context, q retrieve.Query, spent *stopwatch) error {
		q.Filters = s.f
		res, err := g.ask(ctx, Fused, q, spent)
		if err == nil && len(res.hits) != want {
			err = fmt.Errorf("%d hits of %d that match or were asked for", len(res.hits), want)
		}
		return err
	})
}

// measure times a search over the questions, with the processor time of this process.
// A search that is slow in a large corpus is asked fewer questions: those that it
// answered within grownTime, and grownLeast at the least.
func (r *runner) measure(ctx context.Context, name string, search func(context.Context, retrieve.Query, *stopwatch) error) (Percentile, error) {
	var spent stopwatch
	asked := 0
	ask := func() (time.Duration, error) {
		q := r.query(asked%len(r.set.Queries), &spent)
		q.Limit = r.Reranked
		asked++
		r.cfg.Progress(name, asked, grownWarm+grownQueries)
		start := time.Now()
		err := search(ctx, q, &spent)
		return time.Since(start), err
	}
	began := time.Now()
	for asked < grownWarm && (asked == 0 || time.Since(began) < grownTime/10) {
		if _, err := ask(); err != nil {
			return Percentile{}, err
		}
	}
	began = time.Now()
	before := processorTime()
	var times []float64
	for len(times) < grownQueries && (len(times) < grownLeast || time.Since(began) < grownTime) {
		took, err := ask()
		if err != nil {
			return Percentile{}, err
		}
		times = append(times, milliseconds(took))
	}
	cpu := milliseconds(processorTime()-before) / float64(len(times))
	slices.Sort(times)
	return Percentile{Pipeline: name, Questions: len(times), P50: at(times, .5), P95: at(times, .95), CPU: cpu}, nil
}
