package model_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"ragd/inference/cpu"
	"ragd/inference/cpu/kernel"
	"ragd/inference/model"
	"ragd/inference/quant"
)

// Logits are the same bits however a prompt is cut into pieces, on whatever number
// of threads, and whatever else is in the batch.
func TestLogitsDependOnTheSequenceOnly(t *testing.T) {
	for _, set := range kernel.Sets() {
		for _, way := range []struct {
			name       string
			typ, cache quant.Type
		}{
			{"mistral", quant.Q4_1, quant.F16},
			{"gemma3", quant.F32, quant.F16},
			{"qwen2", quant.Q8_0, quant.F16},
			{"gemma3", quant.Q4_1, quant.Q8_0},
			{"qwen3", quant.Q8_0, quant.Q8_0},
		} {
			t.Run(fmt.Sprintf("%s/%s/%s", set.Name, way.name, way.cache), func(t *testing.T) {
				c := tinyModels[way.name]
				c.typ = way.typ
				path := writeTiny(t, c)
				whole := loadFile(t, path, cpu.Config{Threads: 1, Kernels: set, CacheType: way.cache}, 1024)
				cut := loadFile(t, path, cpu.Config{Threads: 3, Kernels: set, CacheType: way.cache}, 1024)
				rapid.Check(t, func(r *rapid.T) { checkCuts(t, r, whole, cut) })
			})
		}
	}
}

func checkCuts(t *testing.T, r *rapid.T, whole, cut *model.Llama) {
	token := rapid.Int32Range(0, 159)
	a := rapid.SliceOfN(token, 1, 300).Draw(r, "a")
	b := rapid.SliceOfN(token, 1, 300).Draw(r, "b")
	want := [2][]float32{forward(t, whole, a, 0), forward(t, whole, b, 0)}
	tables := [2][]int32{table(cut, len(a)), rest(cut, len(a), len(b))}
	seqs := [2][]int32{a, b}
	var done [2]int
	for done[0] < len(a) || done[1] < len(b) {
		var batch model.Batch
		var who []int
		for s := range seqs {
			left := len(seqs[s]) - done[s]
			n := piece(r, left)
			if n == 0 {
				continue
			}
			p := model.Piece{Tokens: seqs[s][done[s] : done[s]+n], Start: done[s], Blocks: tables[s]}
			if done[s] += n; n == left {
				p.Logits = 1
				who = append(who, s)
			}
			batch = append(batch, p)
		}
		if len(batch) == 0 {
			continue
		}
		rows, err := cut.Forward(batch)
		if err != nil {
			r.Fatal(err)
		}
		for i, s := range who {
			if !slices.Equal(rows[i], want[s]) {
				r.Fatalf("sequence %d: logits differ by %g", s, maxDiff(rows[i], want[s]))
			}
		}
	}
}

// piece draws the length of the next piece: often one token, as in decoding.
func piece(r *rapid.T, left int) int {
	n := rapid.OneOf(rapid.IntRange(0, 2), rapid.IntRange(0, 300)).Draw(r, "piece")
	return min(n, left)
}

// rest is a block table of n positions in the blocks that table(m, taken) left.
func rest(m *model.Llama, taken, n int) []int32 {
	blocks := make([]int32, blocksFor(n))
	for i := range blocks {
		blocks[i] = int32(i)
	}
	if blocksFor(taken)+blocksFor(n) > m.Blocks() {
		panic("the cache of the test is too small")
	}
	return blocks
}

// A step allocates nothing once the scratch has grown.
func TestStepsDoNotAllocate(t *testing.T) {
	for _, cache := range []quant.Type{quant.F16, quant.Q8_0} {
		stepsDoNotAllocate(t, loadFile(t, writeTiny(t, tinyModels["qwen3"]), cpu.Config{Threads: 2, CacheType: cache}, 256))
	}
}

func stepsDoNotAllocate(t *testing.T, m *model.Llama) {
	t.Helper()
	prompt := model.Batch{{Tokens: make([]int32, 40), Blocks: table(m, 64), Logits: 1}}
	step := model.Batch{{Tokens: []int32{7}, Start: 40, Blocks: table(m, 64), Logits: 1}}
	for _, b := range []model.Batch{prompt, step} {
		if n := testing.AllocsPerRun(20, func() {
			if _, err := m.Forward(b); err != nil {
				t.Fatal(err)
			}
		}); n > 0 {
			t.Errorf("a step of %d tokens allocates %g times", b.Tokens(), n)
		}
	}
}
