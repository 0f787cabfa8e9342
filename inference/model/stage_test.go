package model_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"ragd/inference/cpu"
	"ragd/inference/gguf"
	"ragd/inference/model"
	"ragd/inference/quant"
)

// loadSplit loads a model whose first layers lie on backends of their own, so many on
// each.
func loadSplit(t *testing.T, path string, cfg cpu.Config, load model.LoadConfig, before ...int) (*model.Llama, error) {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []*cpu.Backend
	for range len(before) + 1 {
		ops, err := cpu.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { ops.Close() })
		all = append(all, ops)
	}
	for i, n := range before {
		load.Before = append(load.Before, model.Stage{Ops: all[i+1], Layers: n})
	}
	return model.LoadDecoder(context.Background(), f, all[0], load)
}

// Every family gives the same bits however its layers are spread over backends, for
// prompts in pieces beside others and for tokens alone.
func TestSplitModelsGiveTheSameBits(t *testing.T) {
	for name, c := range tinyModels {
		c.typ = quant.Q4_1
		path := writeTiny(t, c)
		cfg := cpu.Config{Threads: 1}
		whole := loadFile(t, path, cfg, 256)
		want := splitSteps(t, whole)
		for _, before := range [][]int{{1}, {c.layers - 1}, {1, 1}} {
			if before[0]+len(before)-1 >= c.layers {
				continue
			}
			t.Run(fmt.Sprint(name, before), func(t *testing.T) {
				m, err := loadSplit(t, path, cfg, model.LoadConfig{Blocks: 16}, before...)
				if err != nil {
					t.Fatal(err)
				}
				if got := splitSteps(t, m); !slices.Equal(got, want) {
					t.Error("other logits than the whole model's")
				}
				checkPlaces(t, m, path, before)
			})
		}
	}
}

// splitSteps are the logits of two sequences that run in pieces.
func splitSteps(t *testing.T, m *model.Llama) (logits []float32) {
	t.Helper()
	a, b := make([]int32, 40), make([]int32, 40)
	for i := range a {
		a[i], b[i] = int32(i*7%160), int32(i*11%160)
	}
	tables := [2][]int32{{0, 2, 4}, {5, 3, 1}}
	at := 0
	for _, to := range []int{17, 33, 34, 36, 40} {
		rows, err := m.Forward(model.Batch{
			{Tokens: a[at:to], Start: at, Blocks: tables[0], Logits: 1},
			{Tokens: b[at:to], Start: at, Blocks: tables[1], Logits: to - at},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			logits = append(logits, r...)
		}
		at = to
	}
	return logits
}

// checkPlaces holds what a model says of its stages to what it was asked for, and what
// the file promised to what was taken.
func checkPlaces(t *testing.T, m *model.Llama, path string, before []int) {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ops, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer ops.Close()
	needs, err := model.NeedsOf(f, ops, model.LoadConfig{Blocks: m.Blocks()})
	if err != nil {
		t.Fatal(err)
	}
	first, weights := 0, int64(0)
	for i, p := range m.Places() {
		if i < len(before) && p.Layers != before[i] || p.First != first {
			t.Errorf("stage %d is %+v", i, p)
		}
		// Rotary factors are read and not kept.
		const factors = 64
		if n := needs.Of(p.First, p.Last()+1); n.Weights < p.Weights || n.Weights > p.Weights+factors || n.Cache != p.Cache {
			t.Errorf("stage %d takes %+v, %+v was needed", i, p, n)
		}
		first += p.Layers
		weights += p.Weights
	}
	if first != needs.Layers() || weights != m.Config().Weights {
		t.Errorf("%d layers of %d, %d bytes of %d", first, needs.Layers(), weights, m.Config().Weights)
	}
}

// A block goes to its slot and comes back into another block on all backends, in caches
// of every type.
func TestSplitModelsMoveBlocks(t *testing.T) {
	c := tinyModels["qwen3"]
	c.typ = quant.Q8_0
	path := writeTiny(t, c)
	for _, cfg := range []cpu.Config{{Threads: 1}, {Threads: 1, CacheType: quant.Q8_0}, {Threads: 1, Float32: true}} {
		m, err := loadSplit(t, path, cfg, model.LoadConfig{Blocks: 4, Slots: 2}, 1)
		if err != nil {
			t.Fatal(err)
		}
		prompt, other := make([]int32, 30), make([]int32, 30)
		for i := range prompt {
			prompt[i], other[i] = int32(i), int32(7*i%160)
		}
		forward := func(tokens []int32, start int, blocks ...int32) []float32 {
			t.Helper()
			rows, err := m.Forward(model.Batch{{Tokens: tokens, Start: start, Blocks: blocks, Logits: 1}})
			if err != nil {
				t.Fatal(err)
			}
			return slices.Clone(rows[0])
		}
		forward(prompt, 0, 1, 3)
		want := forward([]int32{9}, 30, 1, 3)
		save := []model.BlockMove{{Block: 3, Slot: 0, Save: true}, {Block: 1, Slot: 1, Save: true}}
		back := []model.BlockMove{{Block: 0, Slot: 1}, {Block: 1, Slot: 0}}
		if err := m.MoveBlocks(save); err != nil {
			t.Fatal(err)
		}
		forward(other, 0, 1, 3)
		if slices.Equal(forward([]int32{9}, 30, 1, 3), want) {
			t.Error("another prompt has the same logits")
		}
		if err := m.MoveBlocks(back); err != nil {
			t.Fatal(err)
		}
		if got := forward([]int32{9}, 30, 0, 1); !slices.Equal(got, want) {
			t.Errorf("%+v: other logits after blocks were moved", cfg)
		}
	}
}

// wholeOnly is a backend that runs whole models only.
type wholeOnly struct{ model.Ops }

func TestSplitsAreRefused(t *testing.T) {
	path := writeTiny(t, tinyModels["qwen3"]) // of two layers
	for _, before := range [][]int{{0}, {2}, {1, 1}, {-1}, {3, -2}} {
		if _, err := loadSplit(t, path, cpu.Config{Threads: 1}, model.LoadConfig{Blocks: 4}, before...); !errors.Is(err, model.ErrConfig) {
			t.Errorf("%v: %v", before, err)
		}
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ops, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer ops.Close()
	_, err = model.LoadDecoder(t.Context(), f, ops, model.LoadConfig{Blocks: 4, Before: []model.Stage{{Ops: wholeOnly{ops}, Layers: 1}}})
	if !errors.Is(err, model.ErrNoStage) || !strings.Contains(err.Error(), ops.Name()) {
		t.Errorf("a backend without StageOps: %v", err)
	}
}

// roomy is a backend with so much memory, all of it free.
type roomy struct {
	*cpu.Backend
	bytes int64
}

func (r roomy) Room() (free, total int64, err error)              { return r.bytes, 2 * r.bytes, nil }
func (r roomy) StepBytes(_ model.Config, s model.StepShape) int64 { return int64(s.Rows) * 100 }

// What a backend has no room for is refused with the figures, and with how many layers
// it has room for; those fit then, to the byte.
func TestRoomForLayers(t *testing.T) {
	c := tinyModels["gemma3"]
	c.typ = quant.Q4_1
	path := writeTiny(t, c)
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	cfg := model.LoadConfig{Blocks: 4, StepTokens: 32}
	needs := func(ops model.SizeOps) *model.Needs {
		n, err := model.NeedsOf(f, ops, cfg)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	load := func(bytes int64, before int) error {
		device, host := newCPU(t), newCPU(t)
		if before > 0 {
			cfg.Before = []model.Stage{{Ops: host, Layers: before}}
		}
		m, err := model.LoadDecoder(t.Context(), f, roomy{device, bytes}, cfg)
		cfg.Before = nil
		if err == nil {
			err = m.Close()
		}
		return err
	}
	three := needs(roomy{newCPU(t), 0}).Of(4, 7).Sum()
	var e *model.RoomError
	if err := load(three, 0); !errors.As(err, &e) || e.Fit != 3 || e.Of != 7 || e.Step != 3200 || e.Free != three ||
		!strings.Contains(err.Error(), "the model does not fit: ") || !strings.Contains(err.Error(), "for 64 tokens and 0.0 MiB for a step are needed") {
		t.Errorf("all layers: %v", err)
	}
	if err := load(three, 4); err != nil {
		t.Errorf("three layers: %v", err)
	}
	if err := load(three-1, 4); !errors.As(err, &e) || e.Fit != 2 || !strings.Contains(err.Error(), "layers 4 to 6 do not fit") {
		t.Errorf("three layers in a byte less: %v", err)
	}
	if n := needs(roomy{newCPU(t), 0}).Fit(7, 10); n != 0 {
		t.Errorf("%d layers fit into ten bytes", n)
	}
}

func newCPU(t *testing.T) *cpu.Backend {
	t.Helper()
	ops, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ops.Close() })
	return ops
}
