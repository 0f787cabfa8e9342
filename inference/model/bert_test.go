package model_test

import (
	"context"
	"errors"
	"testing"

	"ragd/inference/cpu"
	"ragd/inference/gguf"
	"ragd/inference/model"
)

type bertCase struct {
	Tokens            []int32
	Second            int
	Embedding, Scores []float32
}

func loadBERT(t *testing.T, path string, cfg cpu.Config) *model.BERT {
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
	m, err := model.LoadEncoder(context.Background(), f, ops)
	if err != nil {
		ops.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

// All texts of the reference in one packed step: neither embeddings nor scores
// may feel the neighbours.
func TestBERTAgainstReference(t *testing.T) {
	cases := readGolden[bertCase](t, "tinybert_golden.json")
	texts := make([]model.Text, len(cases))
	for i, c := range cases {
		texts[i] = model.Text{Tokens: c.Tokens, Second: c.Second}
	}
	for _, cfg := range []cpu.Config{{Threads: 2, Float32: true}, {Threads: 2}} {
		bound := 1e-5
		if !cfg.Float32 {
			bound = 2e-3 // keys and values in half precision
		}
		m := loadBERT(t, writeTinyBERT(t), cfg)
		vectors, err := m.Embed(texts)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range cases {
			if d := maxDiff(vectors[i], c.Embedding); d > bound {
				t.Errorf("%d tokens: embedding differs by %g", len(c.Tokens), d)
			}
		}
		scores, err := m.Score(texts)
		if err != nil {
			t.Fatal(err)
		}
		for i, c := range cases {
			if d := maxDiff(scores[i], c.Scores); d > 10*bound {
				t.Errorf("%d tokens: scores differ by %g", len(c.Tokens), d)
			}
		}
	}
}

func TestBERTRefusesTexts(t *testing.T) {
	m := loadBERT(t, writeTinyBERT(t), cpu.Config{Threads: 1})
	for name, texts := range map[string][]model.Text{
		"none":           nil,
		"empty":          {{}},
		"too long":       {{Tokens: make([]int32, 41)}},
		"negative token": {{Tokens: []int32{-1}}},
		"large token":    {{Tokens: []int32{120}}},
		"segment":        {{Tokens: []int32{1, 2}, Second: 3}},
	} {
		if _, err := m.Embed(texts); !errors.Is(err, model.ErrBatch) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
