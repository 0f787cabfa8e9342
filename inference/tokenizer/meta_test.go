package tokenizer_test

import (
	"encoding/json"
	"maps"
	"os"
	"testing"
)

// meta is GGUF metadata in memory; it implements tokenizer.Metadata.
type meta map[string]any

func get[T any](m meta, key string) (T, bool) {
	v, ok := m[key].(T)
	return v, ok
}

func (m meta) String(key string) (string, bool)    { return get[string](m, key) }
func (m meta) Uint(key string) (uint64, bool)      { return get[uint64](m, key) }
func (m meta) Bool(key string) (bool, bool)        { return get[bool](m, key) }
func (m meta) Strings(key string) ([]string, bool) { return get[[]string](m, key) }
func (m meta) Floats(key string) ([]float32, bool) { return get[[]float32](m, key) }
func (m meta) Ints(key string) ([]int64, bool)     { return get[[]int64](m, key) }
func (m meta) Bytes(key string) ([]byte, bool)     { return get[[]byte](m, key) }

// with is a copy with other values; nil removes a key.
func (m meta) with(changes meta) meta {
	out := maps.Clone(m)
	for k, v := range changes {
		out[k] = v
		if v == nil {
			delete(out, k)
		}
	}
	return out
}

// smallSentencePiece is the vocabulary of testdata/spm.json as GGUF holds it.
func smallSentencePiece(tb testing.TB) meta {
	tb.Helper()
	data, err := os.ReadFile("testdata/spm.json")
	if err != nil {
		tb.Fatal(err)
	}
	var file struct {
		Tokens []string
		Scores []float32
		Types  []int64
	}
	if err := json.Unmarshal(data, &file); err != nil {
		tb.Fatal(err)
	}
	return meta{
		"tokenizer.ggml.model":      "llama",
		"tokenizer.ggml.tokens":     file.Tokens,
		"tokenizer.ggml.scores":     file.Scores,
		"tokenizer.ggml.token_type": file.Types,
	}
}
