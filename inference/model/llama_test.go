package model_test

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"ragd/inference/cpu"
	"ragd/inference/gguf"
	"ragd/inference/model"
)

// tinyCase is a random-weight model with the reference's logits of the last token.
type tinyCase struct {
	Model  string
	Tokens []int32
	Logits []float32
}

func readGolden[T any](t *testing.T, name string) []T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Cases []T }
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) == 0 {
		t.Fatalf("%s holds no cases", name)
	}
	return file.Cases
}

// loadFile loads a decoder with room for the given number of positions.
func loadFile(t testing.TB, path string, cfg cpu.Config, positions int) *model.Llama {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ops, err := cpu.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.LoadDecoder(context.Background(), f, ops, model.LoadConfig{Blocks: blocksFor(positions)})
	if err != nil {
		ops.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func blocksFor(positions int) int {
	return (positions + model.BlockTokens - 1) / model.BlockTokens
}

// table is a block table that runs backwards through the cache, so that a test
// notices when positions are taken for blocks.
func table(m *model.Llama, positions int) []int32 {
	blocks := make([]int32, blocksFor(positions))
	for i := range blocks {
		blocks[i] = int32(m.Blocks() - 1 - i)
	}
	return blocks
}

// forward runs tokens at the given start and returns a copy of the last logits.
func forward(t testing.TB, m *model.Llama, tokens []int32, start int) []float32 {
	t.Helper()
	end := start + len(tokens)
	rows, err := m.Forward(model.Batch{{Tokens: tokens, Start: start, Blocks: table(m, end), Logits: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return append([]float32(nil), rows[0]...)
}

func TestFamiliesAgainstReference(t *testing.T) {
	for _, c := range readGolden[tinyCase](t, "tiny_golden.json") {
		t.Run(c.Model, func(t *testing.T) {
			path := writeTiny(t, tinyModels[c.Model])
			m := loadFile(t, path, cpu.Config{Threads: 2, Float32: true}, 128)
			got := forward(t, m, c.Tokens, 0)
			if d := maxDiff(got, c.Logits); d > 1e-4 {
				t.Errorf("largest difference %g", d)
			}
		})
	}
}

func maxDiff(a, b []float32) float64 {
	d := 0.0
	for i := range a {
		d = math.Max(d, math.Abs(float64(a[i]-b[i])))
		if math.IsNaN(float64(a[i])) {
			return math.Inf(1)
		}
	}
	return d
}
