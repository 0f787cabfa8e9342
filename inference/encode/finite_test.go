package encode_test

import (
	"context"
	"errors"
	"math"
	"path/filepath"
	"testing"

	"ragd/inference/cpu"
	"ragd/inference/encode"
	"ragd/inference/gguf"
	"ragd/inference/quant"
)

// brokenModel writes an encoder of one layer whose embedding of the word "b" is
// not a number.
func brokenModel(t *testing.T) string {
	t.Helper()
	const width = 8
	words := []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "\u2581a", "\u2581b"}
	path := filepath.Join(t.TempDir(), "broken.gguf")
	err := gguf.Create(path, func(w *gguf.Writer) error {
		var errs []error
		for key, v := range map[string]any{
			"general.architecture": "bert", "general.name": "broken model", "bert.block_count": uint32(1), "bert.embedding_length": uint32(width),
			"bert.attention.head_count": uint32(2), "bert.feed_forward_length": uint32(width), "bert.context_length": uint32(16),
			"bert.attention.layer_norm_epsilon": float32(1e-12), "bert.pooling_type": uint32(1),
			"tokenizer.ggml.model": "bert", "tokenizer.ggml.tokens": words, "tokenizer.ggml.token_type": []int32{3, 3, 3, 3, 3, 1, 1},
			"tokenizer.ggml.unknown_token_id": uint32(1), "tokenizer.ggml.bos_token_id": uint32(2), "tokenizer.ggml.eos_token_id": uint32(3),
			"tokenizer.ggml.cls_token_id": uint32(2), "tokenizer.ggml.seperator_token_id": uint32(3),
		} {
			errs = append(errs, w.Set(key, v))
		}
		add := func(name string, rows, cols int) {
			x := make([]float32, rows*cols)
			for i := range x {
				x[i] = float32(i%5) - 1.5
			}
			if name == "token_embd.weight" {
				x[len(x)-1] = float32(math.NaN())
			}
			data := make([]byte, 4*len(x))
			dims := []uint64{uint64(cols), uint64(rows)}
			if rows == 1 {
				dims = dims[:1]
			}
			errs = append(errs, quant.Encode(quant.F32, data, x), w.Add(name, dims, quant.F32, data))
		}
		add("token_embd.weight", len(words), width)
		add("position_embd.weight", 16, width)
		for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_output", "ffn_up", "ffn_down"} {
			add("blk.0."+name+".weight", width, width)
		}
		for _, name := range []string{"token_embd_norm", "blk.0.attn_output_norm", "blk.0.layer_output_norm"} {
			add(name+".weight", 1, width)
			add(name+".bias", 1, width)
		}
		return errors.Join(errs...)
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A vector that is no number is an error of its text and spoils no other.
func TestNaNNeverLeaves(t *testing.T) {
	ops, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	e, err := encode.Open(context.Background(), brokenModel(t), ops, encode.Config{})
	if err != nil {
		t.Fatal(errors.Join(err, ops.Close()))
	}
	defer e.Close()
	results, err := e.EmbedPassages(context.Background(), []string{"a", "b", "a a"})
	if !errors.Is(err, encode.ErrNotFinite) {
		t.Fatalf("error %v", err)
	}
	for i, r := range results {
		if bad := i == 1; bad != (r.Vector == nil) || bad != errors.Is(r.Err, encode.ErrNotFinite) {
			t.Errorf("text %d: vector %v, error %v", i, r.Vector, r.Err)
		}
	}
}
