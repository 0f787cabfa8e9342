package eval

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
)

// ErrCompare: two reports have nothing that could be compared.
var ErrCompare = errors.New("reports cannot be compared")

// Report is what a run leaves in a file (DESIGN §9).
type Report struct {
	*Result
	Commit string `json:"commit"`
	// Config holds every setting that the run was made with, secrets left out.
	Config map[string]any `json:"config"`
}

// Comparison says what changed from one run to another of the same set.
type Comparison struct {
	Set      string        `json:"set"`
	Commits  [2]string     `json:"commits"`
	Settings []Setting     `json:"settings"`
	Rows     []Difference  `json:"rows"`
	Changed  []Improvement `json:"changed"`
}

// Setting is one that differs.
type Setting struct {
	Name   string `json:"name"`
	Before any    `json:"before"`
	After  any    `json:"after"`
}

// Difference is that of a metric over the questions that both runs asked.
type Difference struct {
	// Pipeline is "answers" for the metrics of answers.
	Pipeline string  `json:"pipeline"`
	Metric   string  `json:"metric"`
	Queries  int     `json:"queries"`
	Before   float64 `json:"before"`
	After    float64 `json:"after"`
	// Interval is the 95 % interval of the mean difference, by the paired bootstrap,
	// P the p-value of the paired randomisation test, two-sided.
	Interval [2]float64 `json:"interval"`
	P        float64    `json:"p"`
	Better   int        `json:"better"`
	Worse    int        `json:"worse"`
}

// Significant says whether the change would be that large by chance in less than
// one of twenty cases. With many metrics one of twenty is to be expected.
func (d Difference) Significant() bool { return d.P < 0.05 }

// Improvement is a question whose score changed, for better or worse.
type Improvement struct {
	Pipeline string  `json:"pipeline"`
	Metric   string  `json:"metric"`
	ID       string  `json:"id"`
	Before   float64 `json:"before"`
	After    float64 `json:"after"`
}

// steps compares the pipelines of one run: what fusion adds to each of its sides
// and the reranker to fusion, in nDCG@10.
func steps(rows []Row) []Difference {
	c := &Comparison{}
	for _, step := range [][2]string{{Lexical, Fused}, {Dense, Fused}, {Fused, Default}, {Default, Late}} {
		for _, a := range rows {
			for _, b := range rows {
				if a.Pipeline == step[0] && b.Pipeline == step[1] {
					of := func(s Score) float64 { return s.NDCG10 }
					c.add(a.Pipeline+" → "+b.Pipeline, "ndcg@10", pairs(a.PerQuery, b.PerQuery, func(s Score) string { return s.ID }, of), false)
				}
			}
		}
	}
	return c.Rows
}

// mostChanged is how many questions of a pipeline are listed.
const mostChanged = 10

// Compare sets two runs of one set beside each other, question by question.
func Compare(before, after *Report) (*Comparison, error) {
	if before.Result == nil || after.Result == nil {
		return nil, fmt.Errorf("%w: one holds no result", ErrCompare)
	}
	if before.Set != after.Set {
		return nil, fmt.Errorf("%w: one is of %s, the other of %s", ErrCompare, before.Set, after.Set)
	}
	out := &Comparison{
		Set: before.Set, Commits: [2]string{before.Commit, after.Commit},
		Settings: settings("", before.Config, after.Config), Changed: []Improvement{},
	}
	for _, a := range before.Rows {
		for _, b := range after.Rows {
			if a.Pipeline == b.Pipeline {
				out.row(a, b)
			}
		}
	}
	out.answers(before.Answers, after.Answers)
	if len(out.Rows) == 0 {
		return nil, fmt.Errorf("%w: they have no pipeline with the same questions", ErrCompare)
	}
	return out, nil
}

func (c *Comparison) row(a, b Row) {
	for i, m := range metricNames {
		of := func(s Score) float64 { return m.of(s.Metrics) }
		p := pairs(a.PerQuery, b.PerQuery, func(s Score) string { return s.ID }, of)
		c.add(a.Pipeline, m.name, p, i == 0)
	}
	of := func(s Score) float64 { return float64(s.ContextTokens) }
	c.add(a.Pipeline, "context_tokens", pairs(a.PerQuery, b.PerQuery, func(s Score) string { return s.ID }, of), false)
}

// scored is one question in both runs.
type scored struct {
	id            string
	before, after float64
}

// pairs matches the scores of two runs by question. Ids that come more than once
// are matched in their order.
func pairs[T any](a, b []T, id func(T) string, of func(T) float64) []scored {
	type key struct {
		id  string
		nth int
	}
	index := map[key]float64{}
	seen := map[string]int{}
	for _, v := range a {
		index[key{id(v), seen[id(v)]}] = of(v)
		seen[id(v)]++
	}
	clear(seen)
	var out []scored
	for _, v := range b {
		k := key{id(v), seen[id(v)]}
		seen[id(v)]++
		if before, both := index[k]; both {
			out = append(out, scored{k.id, before, of(v)})
		}
	}
	return out
}

func (c *Comparison) add(pipeline, metric string, list []scored, detailed bool) {
	if len(list) == 0 {
		return
	}
	d := Difference{Pipeline: pipeline, Metric: metric, Queries: len(list)}
	changes := column(list, func(s scored) float64 { return s.after - s.before })
	d.Before, d.After = average(column(list, func(s scored) float64 { return s.before })), average(column(list, func(s scored) float64 { return s.after }))
	d.Interval, d.P = interval(changes), pValue(changes)
	for _, v := range changes {
		switch {
		case v > 0:
			d.Better++
		case v < 0:
			d.Worse++
		}
	}
	c.Rows = append(c.Rows, d)
	if detailed {
		c.list(pipeline, metric, list)
	}
}

// list keeps the questions that changed most.
func (c *Comparison) list(pipeline, metric string, list []scored) {
	size := func(s scored) float64 { return math.Abs(s.after - s.before) }
	list = slices.DeleteFunc(list, func(s scored) bool { return s.before == s.after })
	slices.SortStableFunc(list, func(a, b scored) int { return cmp.Compare(size(b), size(a)) })
	for _, s := range list[:min(mostChanged, len(list))] {
		c.Changed = append(c.Changed, Improvement{pipeline, metric, s.id, s.before, s.after})
	}
}

// settings lists what differs between two trees of settings.
func settings(path string, a, b map[string]any) []Setting {
	out := []Setting{}
	names := map[string]bool{}
	for name := range a {
		names[name] = true
	}
	for name := range b {
		names[name] = true
	}
	for name := range names {
		x, y := a[name], b[name]
		xs, xok := x.(map[string]any)
		ys, yok := y.(map[string]any)
		switch {
		case xok || yok:
			out = append(out, settings(path+name+".", xs, ys)...)
		case !reflect.DeepEqual(x, y):
			out = append(out, Setting{path + name, x, y})
		}
	}
	slices.SortFunc(out, func(a, b Setting) int { return cmp.Compare(a.Name, b.Name) })
	return out
}
