package model_test

import (
	"math"
	"testing"

	"ragd/inference/cpu"
	"ragd/inference/model"
	"ragd/internal/testenv"
)

// What quantised activations and a half-precision cache cost, over 2,000 positions:
// the Kullback-Leibler divergence of the float32 path's distribution from that of
// the path in use, and how often their first choices agree. The bounds are a
// little above what llama.cpp's own CPU path shows against the same weights.
func TestSmolLM2DivergenceInUse(t *testing.T) {
	path := testenv.Model(t, smolLM2)
	exact := loadFile(t, path, cpu.Config{Float32: true}, 1600)
	inUse := loadFile(t, path, cpu.Config{}, 1600)
	var d divergence
	for _, c := range readGolden[smolCase](t, "smollm2_golden.json") {
		if n := len(c.Tokens); n >= 64 && d.positions < 2000 {
			d.compare(t, exact, inUse, c.Tokens[:min(n, 2000-d.positions)])
		}
	}
	mean, agree := d.sum/float64(d.positions), float64(d.same)/float64(d.positions)
	t.Logf("%d positions: mean KL %.5f, top-1 agreement %.2f %%", d.positions, mean, 100*agree)
	if d.positions != 2000 {
		t.Errorf("%d positions compared", d.positions)
	}
	if mean > maxKL || agree < minAgreement {
		t.Errorf("mean KL %.5f (at most %g), agreement %.4f (at least %g)", mean, maxKL, agree, minAgreement)
	}
}

const (
	maxKL        = 0.006
	minAgreement = 0.95
)

type divergence struct {
	positions, same int
	sum             float64
}

// compare runs tokens through both models in pieces with logits of every row.
func (d *divergence) compare(t *testing.T, exact, inUse *model.Llama, tokens []int32) {
	t.Helper()
	const piece = 128
	for at := 0; at < len(tokens); at += piece {
		part := tokens[at:min(at+piece, len(tokens))]
		p, q := allRows(t, exact, part, at), allRows(t, inUse, part, at)
		for i := range p {
			d.positions++
			d.sum += klDivergence(p[i], q[i])
			if argmax(p[i]) == argmax(q[i]) {
				d.same++
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
