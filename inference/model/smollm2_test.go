package model_test

import (
	"math"
	"testing"

	"ragd/inference/cpu"
	"ragd/inference/model"
	"ragd/internal/testenv"
)

const smolLM2 = "smollm2-135m-instruct"

// smolCase is a prompt with what the reference says about its last position and
// how it goes on from there.
type smolCase struct {
	Tokens           []int32
	Top              [][2]float64
	Every1024        []float32
	Mean, MeanSquare float64
	Greedy           [][2]float64 // token and its lead over the second best
}

// On the float32 path logits and greedy continuations are those of the reference.
func TestSmolLM2AgainstReference(t *testing.T) {
	m := loadFile(t, testenv.Model(t, smolLM2), cpu.Config{Float32: true}, 2048)
	worst := 0.0
	for _, c := range readGolden[smolCase](t, "smollm2_golden.json") {
		rows := c.run(t, m)
		d := c.difference(rows[0])
		worst = math.Max(worst, d)
		if d > 1e-3 {
			t.Errorf("%d tokens: largest difference %g", len(c.Tokens), d)
		}
		c.checkGreedy(t, rows, 2e-3)
	}
	t.Logf("largest difference of a logit: %.2g", worst)
}

// On the path in use activations are quantised. Its greedy choice may leave the
// reference's only where the reference itself nearly ties; the bound is a few
// times the error of a logit there.
func TestSmolLM2GreedyInUse(t *testing.T) {
	m := loadFile(t, testenv.Model(t, smolLM2), cpu.Config{}, 2048)
	for _, c := range readGolden[smolCase](t, "smollm2_golden.json") {
		c.checkGreedy(t, c.run(t, m), 0.5)
	}
}

// run returns logits of the prompt's last position and of every token of the
// reference's continuation, which is fed in as it is: each position is judged
// on the reference's own text, also after one that differs.
func (c *smolCase) run(t *testing.T, m *model.Llama) [][]float32 {
	t.Helper()
	tokens := append([]int32(nil), c.Tokens...)
	for _, g := range c.Greedy[:len(c.Greedy)-1] {
		tokens = append(tokens, int32(g[0]))
	}
	rows, err := m.Forward(model.Batch{{Tokens: tokens, Blocks: table(m, len(tokens)), Logits: len(c.Greedy)}})
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

func (c *smolCase) checkGreedy(t *testing.T, rows [][]float32, tie float64) {
	t.Helper()
	for i, want := range c.Greedy {
		got := argmax(rows[i])
		if got == int32(want[0]) {
			continue
		}
		t.Logf("%d tokens: greedy token %d is %d, the reference has %d with a lead of %g", len(c.Tokens), i, got, int32(want[0]), want[1])
		if want[1] > tie {
			t.Errorf("%d tokens: greedy token %d differs and is no near-tie", len(c.Tokens), i)
		}
	}
}

// difference is the largest one among the logits the golden file holds; the means
// cover the rest.
func (c *smolCase) difference(logits []float32) float64 {
	d := 0.0
	for _, top := range c.Top {
		d = math.Max(d, math.Abs(float64(logits[int(top[0])])-top[1]))
	}
	for i, want := range c.Every1024 {
		d = math.Max(d, math.Abs(float64(logits[i*1024]-want)))
	}
	sum, square := 0.0, 0.0
	for _, x := range logits {
		sum += float64(x)
		square += float64(x) * float64(x)
	}
	n := float64(len(logits))
	d = math.Max(d, math.Abs(sum/n-c.Mean))
	return math.Max(d, math.Abs(math.Sqrt(square/n)-math.Sqrt(c.MeanSquare)))
}

func argmax(x []float32) int32 {
	best := 0
	for i, v := range x {
		if v > x[best] {
			best = i
		}
	}
	return int32(best)
}
