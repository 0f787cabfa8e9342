package model_test

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"ragd/inference/cpu"
	"ragd/inference/gguf"
	"ragd/inference/model"
)

// load tries to load a decoder and closes it again.
func load(t *testing.T, path string, blocks int) error {
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
	_, err = model.LoadDecoder(context.Background(), f, ops, model.LoadConfig{Blocks: blocks})
	return err
}

func TestUnknownArchitecture(t *testing.T) {
	c := tinyModels["qwen2"]
	c.arch = "gpt-neox"
	err := load(t, writeTiny(t, c), 4)
	var unknown *model.UnknownArchitectureError
	if !errors.As(err, &unknown) || unknown.Architecture != "gpt-neox" || !slices.Contains(unknown.Known, "llama") {
		t.Fatalf("error %v", err)
	}
	if !strings.Contains(err.Error(), "gpt-neox") || !strings.Contains(err.Error(), "qwen3") {
		t.Errorf("%v does not name the architecture and those known", err)
	}
}

func TestLoadRefuses(t *testing.T) {
	with := func(change func(*tinyModel)) tinyModel {
		c := tinyModels["qwen3"]
		keys := map[string]any{}
		for k, v := range c.keys {
			keys[k] = v
		}
		c.keys = keys
		change(&c)
		return c
	}
	for name, c := range map[string]struct {
		model  tinyModel
		blocks int
		want   error
		text   string
	}{
		"no blocks":        {with(func(*tinyModel) {}), 0, model.ErrConfig, "0 KV cache blocks"},
		"heads":            {with(func(c *tinyModel) { c.kv = 3 }), 4, model.ErrConfig, "4 query heads cannot share 3"},
		"odd head":         {with(func(c *tinyModel) { c.dim = 15 }), 4, model.ErrConfig, "head dimension 15"},
		"yarn":             {with(func(c *tinyModel) { c.keys["rope.scaling.type"] = "yarn" }), 4, model.ErrConfig, "yarn"},
		"rope base":        {with(func(c *tinyModel) { c.keys["rope.freq_base"] = float32(-1) }), 4, model.ErrConfig, "rotary bases -1"},
		"rotated":          {with(func(c *tinyModel) { c.keys["rope.dimension_count"] = uint32(64) }), 4, model.ErrConfig, "64 rotated dimensions"},
		"huge":             {with(func(c *tinyModel) { c.keys["attention.sliding_window"] = uint32(1 << 31) }), 4, model.ErrConfig, "sliding_window is 2147483648"},
		"no layers":        {with(func(c *tinyModel) { c.layers = 0 }), 4, model.ErrConfig, "block_count is 0"},
		"tensor left over": {with(func(c *tinyModel) { c.extra = "blk.0.ffn_gate_inp.weight" }), 4, model.ErrTensor, "ffn_gate_inp.weight belongs to no part"},
		"wrong shape":      {with(func(c *tinyModel) { c.claimFF = 128 }), 4, model.ErrTensor, "has shape 96×64, the configuration asks for 128×64"},
	} {
		t.Run(name, func(t *testing.T) {
			err := load(t, writeTiny(t, c.model), c.blocks)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("error %v, want %q", err, c.text)
			}
		})
	}
}

func TestLoadStopsWhenCancelled(t *testing.T) {
	f, err := gguf.Open(writeTiny(t, tinyModels["qwen3"]))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ops, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer ops.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := model.LoadDecoder(ctx, f, ops, model.LoadConfig{Blocks: 4}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// Weights are copied: what happens to the file afterwards does not matter.
func TestFileMayGoAfterLoading(t *testing.T) {
	path := writeTiny(t, tinyModels["llama3"])
	m := loadFile(t, path, cpu.Config{Threads: 1}, 64)
	tokens := []int32{1, 2, 3, 4}
	want := forward(t, m, tokens, 0)
	if err := os.Truncate(path, 100); err != nil {
		t.Fatal(err)
	}
	if got := forward(t, m, tokens, 0); !slices.Equal(got, want) {
		t.Error("logits changed with the file")
	}
}

// A file cut short after it was opened is an error of the tensor it hits.
func TestFileCutWhileLoading(t *testing.T) {
	path := writeTiny(t, tinyModels["llama3"])
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, info.Size()/2); err != nil {
		t.Fatal(err)
	}
	ops, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer ops.Close()
	_, err = model.LoadDecoder(context.Background(), f, ops, model.LoadConfig{Blocks: 4})
	var format *gguf.FormatError
	if !errors.As(err, &format) || !errors.Is(err, model.ErrTensor) {
		t.Errorf("error %v", err)
	}
}

func TestForwardRefusesBatches(t *testing.T) {
	m := loadFile(t, writeTiny(t, tinyModels["qwen3"]), cpu.Config{Threads: 1}, 64)
	one := []int32{0}
	for name, b := range map[string]model.Batch{
		"nothing":        nil,
		"empty piece":    {{Blocks: one}},
		"token":          {{Tokens: []int32{160}, Blocks: one}},
		"negative token": {{Tokens: []int32{-1}, Blocks: one}},
		"block":          {{Tokens: []int32{1}, Blocks: []int32{4}}},
		"blocks missing": {{Tokens: []int32{1}, Start: 16, Blocks: one}},
		"position":       {{Tokens: []int32{1}, Start: 512, Blocks: make([]int32, 64)}},
		"negative start": {{Tokens: []int32{1}, Start: -1, Blocks: one}},
		"logits":         {{Tokens: []int32{1}, Blocks: one, Logits: 2}},
	} {
		if _, err := m.Forward(b); !errors.Is(err, model.ErrBatch) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
