package eval

import (
	"math"
	"testing"
)

// Worked by hand. log2: 2→1, 3→1.585, 4→2, 5→2.3219.
func TestMeasure(t *testing.T) {
	graded := map[string]float64{"a": 3, "b": 2, "c": 1}
	for name, c := range map[string]struct {
		q       Query
		ranking []string
		want    Metrics
	}{
		"perfect": {Query{Gain: graded}, []string{"a", "b", "c"}, Metrics{1, 1, 1, 1, 1}},
		"swapped": {Query{Gain: graded}, []string{"b", "a", "x", "c"}, Metrics{
			NDCG10: (2 + 3/1.5849625 + 1/2.3219281) / (3 + 2/1.5849625 + 1.0/2), MRR10: 1, Recall5: 1, Recall20: 1, Recall100: 1,
		}},
		"one at place 3": {Query{Gain: map[string]float64{"a": 1}}, []string{"x", "y", "a"}, Metrics{0.5, 1.0 / 3, 1, 1, 1}},
		"place 11":       {Query{Gain: map[string]float64{"a": 1}}, places("x", 10, "a"), Metrics{0, 0, 0, 1, 1}},
		"place 21":       {Query{Gain: map[string]float64{"a": 1, "b": 1}}, places("x", 20, "a"), Metrics{0, 0, 0, 0, 0.5}},
		"nothing found":  {Query{Gain: graded}, nil, Metrics{}},
		"ignored and repeated": {
			Query{Gain: map[string]float64{"a": 1}, Ignored: map[string]bool{"i": true}},
			[]string{"i", "x", "x", "a"},
			Metrics{1 / 1.5849625, 0.5, 1, 1, 1},
		},
	} {
		got := measure(c.q, c.ranking)
		for i, pair := range [][2]float64{
			{got.NDCG10, c.want.NDCG10},
			{got.MRR10, c.want.MRR10},
			{got.Recall5, c.want.Recall5},
			{got.Recall20, c.want.Recall20},
			{got.Recall100, c.want.Recall100},
		} {
			if math.Abs(pair[0]-pair[1]) > 1e-6 {
				t.Errorf("%s: metric %d is %g, want %g", name, i, pair[0], pair[1])
			}
		}
	}
}

// places is n documents that answer nothing, then one more.
func places(filler string, n int, last string) []string {
	var out []string
	for i := range n {
		out = append(out, filler+string(rune('A'+i)))
	}
	return append(out, last)
}

func TestMeanAndInterval(t *testing.T) {
	list := []Metrics{{NDCG10: 1}, {NDCG10: 0}, {NDCG10: 1}, {NDCG10: 0}}
	if m := mean(list); m.NDCG10 != 0.5 || m.MRR10 != 0 {
		t.Errorf("mean %+v", m)
	}
	of := func(m Metrics) float64 { return m.NDCG10 }
	in := interval(column(list, of))
	if in[0] > 0.25 || in[1] < 0.75 || in != interval(column(list, of)) {
		t.Errorf("interval %v", in)
	}
	if same := interval([]float64{0.3, 0.3}); math.Abs(same[0]-0.3) > 1e-9 || math.Abs(same[1]-0.3) > 1e-9 {
		t.Errorf("interval of equal values %v", same)
	}
	if interval(nil) != [2]float64{} {
		t.Error("an interval without questions")
	}
}
