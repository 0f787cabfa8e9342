package model_test

import (
	"math"
	"testing"

	"ragd/inference/cpu"
	"ragd/inference/model"
	"ragd/inference/quant"
	"ragd/internal/testenv"
)

// What quantised activations and a cache in half precision or in q8_0 cost, over 2,000
// positions: the Kullback-Leibler divergence of the float32 path's distribution from
// that of the path in use, and how often their first choices agree. The bounds are a
// little above what llama.cpp's own CPU path shows against the same weights. A q8_0 cache
// is held to the same: keys and values of eight bits are rounded as finely as the
// activations, which are most of what the f16 cache's path differs by already.
func TestSmolLM2DivergenceInUse(t *testing.T) {
	path := testenv.Model(t, smolLM2)
	exact := loadFile(t, path, cpu.Config{Float32: true}, 1600)
	ways := []*divergence{
		{name: "f16", m: loadFile(t, path, cpu.Config{}, 1600)},
		{name: "q8_0", m: loadFile(t, path, cpu.Config{CacheType: quant.Q8_0}, 1600)},
	}
	positions := 0
	for _, c := range readGolden[smolCase](t, "smollm2_golden.json") {
		if n := min(len(c.Tokens), 2000-positions); len(c.Tokens) >= 64 && n > 0 {
			compare(t, exact, ways, c.Tokens[:n])
			positions += n
		}
	}
	if positions != 2000 {
		t.Errorf("%d positions compared", positions)
	}
	for _, d := range ways {
		mean, agree := d.sum/float64(positions), float64(d.same)/float64(positions)
		t.Logf("%s cache, %d positions: mean KL %.5f, top-1 agreement %.2f %%", d.name, positions, mean, 100*agree)
		if mean > maxKL || agree < minAgreement {
			t.Errorf("%s cache: mean KL %.5f (at most %g), agreement %.4f (at least %g)", d.name, mean, maxKL, agree, minAgreement)
		}
	}
}

const (
	maxKL        = 0.006
	minAgreement = 0.95
)

// divergence is that of one way to compute.
type divergence struct {
	name string
	m    *model.Llama
	sum  float64
	same int
}

// compare runs tokens through all models in pieces with logits of every row.
func compare(t *testing.T, exact *model.Llama, ways []*divergence, tokens []int32) {
	t.Helper()
	const piece = 128
	for at := 0; at < len(tokens); at += piece {
		part := tokens[at:min(at+piece, len(tokens))]
		p := allRows(t, exact, part, at)
		for _, d := range ways {
			for i, q := range allRows(t, d.m, part, at) {
				d.sum += klDivergence(p[i], q)
				if argmax(p[i]) == argmax(q) {
					d.same++
				}
			}
		}
	}
}

func allRows(t *testing.T, m *model.Llama, tokens []int32, start int) [][]float32 {
	t.Helper()
	rows, err := m.Forward(model.Batch{{Tokens: tokens, Start: start, Blocks: table(m, start+len(tokens)), Logits: len(tokens)}})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// klDivergence is Σ p·ln(p/q) of the two softmax distributions.
func klDivergence(p, q []float32) float64 {
	lp, lq := logSum(p), logSum(q)
	sum := 0.0
	for i := range p {
		a, b := float64(p[i])-lp, float64(q[i])-lq
		sum += math.Exp(a) * (a - b)
	}
	return sum
}

func logSum(x []float32) float64 {
	top := float64(x[argmax(x)])
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(float64(v) - top)
	}
	return top + math.Log(sum)
}
