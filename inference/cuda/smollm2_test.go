//go:build cuda && cgo

package cuda

import (
	"context"
	"math"
	"testing"
	"time"

	"ragd/inference/cpu"
	"ragd/inference/gguf"
	"ragd/inference/model"
	"ragd/internal/testenv"
)

const smolLM2 = "smollm2-135m-instruct"

func loadDecoder(t *testing.T, path string, ops model.Ops) *model.Llama {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := model.LoadDecoder(context.Background(), f, ops, model.LoadConfig{Blocks: 16})
	if err != nil {
		ops.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func TestX(t *testing.T) {
	path := testenv.Model(t, smolLM2)
	c, _ := cpu.New(cpu.Config{})
	d, err := New(testConfig(t))
	if err != nil {
		t.Fatal(err)
	}
	a, g := loadDecoder(t, path, c), loadDecoder(t, path, d)
	tokens := []int32{1, 9690, 198, 2683, 359, 253, 5356, 5646, 11173}
	b := model.Batch{{Tokens: tokens, Blocks: []int32{3, 2}, Logits: 2}}
	want, err := a.Forward(b)
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	got, err := g.Forward(b)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(time.Since(start))
	for r := range want {
		worst := 0.0
		for i := range want[r] {
			worst = math.Max(worst, math.Abs(float64(want[r][i]-got[r][i])))
			if math.IsNaN(float64(got[r][i])) {
				worst = math.Inf(1)
			}
		}
		t.Log(r, worst, want[r][:4], got[r][:4])
	}
	b[0].Start, b[0].Tokens, b[0].Logits = 9, []int32{42}, 1
	start = time.Now()
	if _, err = g.Forward(b); err != nil {
		t.Fatal(err)
	}
	t.Log(time.Since(start))
}
