package eval

import (
	"cmp"
	"math"
	"slices"
)

// depth is how many places of a ranking are scored.
const depth = 100

// Metrics are means over questions.
type Metrics struct {
	NDCG10    float64 `json:"ndcg@10"`
	MRR10     float64 `json:"mrr@10"`
	Recall5   float64 `json:"recall@5"`
	Recall20  float64 `json:"recall@20"`
	Recall100 float64 `json:"recall@100"`
}

// metricNames are the metrics as JSON has them.
var metricNames = []struct {
	name string
	of   func(Metrics) float64
}{
	{"ndcg@10", func(m Metrics) float64 { return m.NDCG10 }},
	{"mrr@10", func(m Metrics) float64 { return m.MRR10 }},
	{"recall@5", func(m Metrics) float64 { return m.Recall5 }},
	{"recall@20", func(m Metrics) float64 { return m.Recall20 }},
	{"recall@100", func(m Metrics) float64 { return m.Recall100 }},
}

// measure scores one ranking of document ids.
func measure(q Query, ranking []string) Metrics {
	ranking = distinct(ranking, q.Ignored)
	return Metrics{
		NDCG10: ndcg(q.Gain, ranking, 10), MRR10: reciprocalRank(q.Gain, ranking, 10),
		Recall5: recall(q.Gain, ranking, 5), Recall20: recall(q.Gain, ranking, 20), Recall100: recall(q.Gain, ranking, 100),
	}
}

// distinct keeps the first of each document and leaves the ignored out.
func distinct(ranking []string, ignored map[string]bool) []string {
	seen := make(map[string]bool, len(ranking))
	out := make([]string, 0, len(ranking))
	for _, id := range ranking {
		if !seen[id] && !ignored[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}

// ndcg is Σ gain/log2(place+1) over the first k, divided by that of the best order
// (Järvelin and Kekäläinen, 2002, with linear gains as trec_eval has them).
func ndcg(gain map[string]float64, ranking []string, k int) float64 {
	var got, best float64
	for i, id := range ranking[:min(k, len(ranking))] {
		got += gain[id] / math.Log2(float64(i+2))
	}
	ideal := make([]float64, 0, len(gain))
	for _, g := range gain {
		ideal = append(ideal, g)
	}
	slices.SortFunc(ideal, func(a, b float64) int { return cmp.Compare(b, a) })
	for i, g := range ideal[:min(k, len(ideal))] {
		best += g / math.Log2(float64(i+2))
	}
	if best == 0 {
		return 0
	}
	return got / best
}

func reciprocalRank(gain map[string]float64, ranking []string, k int) float64 {
	for i, id := range ranking[:min(k, len(ranking))] {
		if gain[id] > 0 {
			return 1 / float64(i+1)
		}
	}
	return 0
}

func recall(gain map[string]float64, ranking []string, k int) float64 {
	if len(gain) == 0 {
		return 0
	}
	found := 0
	for _, id := range ranking[:min(k, len(ranking))] {
		if gain[id] > 0 {
			found++
		}
	}
	return float64(found) / float64(len(gain))
}

// mean is the average of each metric.
func mean(list []Metrics) Metrics {
	var sum Metrics
	for _, m := range list {
		sum.NDCG10 += m.NDCG10
		sum.MRR10 += m.MRR10
		sum.Recall5 += m.Recall5
		sum.Recall20 += m.Recall20
		sum.Recall100 += m.Recall100
	}
	n := float64(max(len(list), 1))
	return Metrics{sum.NDCG10 / n, sum.MRR10 / n, sum.Recall5 / n, sum.Recall20 / n, sum.Recall100 / n}
}
