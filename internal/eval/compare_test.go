package eval

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"
)

func reportOf(set, commit string, settings map[string]any, values ...float64) *Report {
	row := Row{Pipeline: Fused, Queries: len(values)}
	for i, v := range values {
		row.PerQuery = append(row.PerQuery, Score{ID: fmt.Sprint("q", i), Metrics: Metrics{NDCG10: v}, ContextTokens: 100 + i})
	}
	row.sum()
	return &Report{Result: &Result{Set: set, Rows: []Row{row}}, Commit: commit, Config: settings}
}

func TestCompare(t *testing.T) {
	before := reportOf("tiny", "old", map[string]any{"retrieve": map[string]any{"top_k": 20, "fusion": "convex"}}, .5, .5, .5, .5, .5, .5, .5, .5, .9, .1)
	after := reportOf("tiny", "new", map[string]any{"retrieve": map[string]any{"top_k": 30, "fusion": "convex"}}, .6, .7, .6, .6, .7, .6, .6, .6, .9, 0)
	c, err := Compare(before, after)
	if err != nil {
		t.Fatal(err)
	}
	d := c.Rows[0]
	if d.Metric != "ndcg@10" || d.Queries != 10 || d.Better != 8 || d.Worse != 1 || math.Abs(d.After-d.Before-0.09) > 1e-9 {
		t.Errorf("%+v", d)
	}
	if d.Interval[0] > 0.09 || d.Interval[1] < 0.09 || d.Interval[0] <= 0 {
		t.Errorf("interval %v", d.Interval)
	}
	if len(c.Changed) != 9 || c.Changed[0].ID != "q1" || c.Changed[0].After != .7 {
		t.Errorf("changed most: %+v", c.Changed)
	}
	if len(c.Settings) != 1 || c.Settings[0] != (Setting{"retrieve.top_k", 20, 30}) {
		t.Errorf("settings %+v", c.Settings)
	}
}

// A report that was written and read again is compared with itself.
func TestCompareWithItself(t *testing.T) {
	r := reportOf("tiny", "c", map[string]any{"a": 1}, .5, .25, 1)
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	var again [2]Report
	for i := range again {
		if err := json.Unmarshal(text, &again[i]); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Compare(&again[0], &again[1])
	if err != nil || len(c.Settings) != 0 || len(c.Changed) != 0 {
		t.Fatalf("%+v, %v", c, err)
	}
	for _, d := range c.Rows {
		if d.P != 1 || d.Significant() || d.Before != d.After {
			t.Errorf("%+v", d)
		}
	}
}

func TestCompareRefuses(t *testing.T) {
	a, b := reportOf("tiny", "", nil, 1), reportOf("other", "", nil, 1)
	other := reportOf("tiny", "", nil, 1)
	other.Rows[0].Pipeline = Dense
	for name, pair := range map[string][2]*Report{"sets": {a, b}, "pipelines": {a, other}, "empty": {a, {}}} {
		if _, err := Compare(pair[0], pair[1]); !errors.Is(err, ErrCompare) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Of n differences of one size and sign the two outer of 2^n sums are as large.
func TestPValue(t *testing.T) {
	for n := 1; n <= 8; n++ {
		d := make([]float64, n)
		for i := range d {
			d[i] = 0.1
		}
		want := 2 / math.Pow(2, float64(n))
		if p := pValue(d); math.Abs(p-want) > 0.02 {
			t.Errorf("%d differences: p %g, want %g", n, p, want)
		}
	}
	if p := pValue([]float64{0, 0}); p != 1 {
		t.Errorf("no difference: p %g", p)
	}
}
