//go:build cuda && cgo

package cuda

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"

	"ragd/inference/gguf"
	"ragd/inference/model"
	"ragd/inference/quant"
)

// tiny is the shape of a random-weight Gemma 3: it takes every branch of the decoder's
// operations (head norms, post norms, a window, tied embeddings, rotation in halves).
const tinyWidth, tinyHeads, tinyKV, tinyDim, tinyFF, tinyVocab, tinyLayers = 64, 4, 2, 32, 96, 80, 2

// writeTiny writes the model and returns its path.
func writeTiny(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	rng := rand.New(rand.NewPCG(19, 20))
	err := gguf.Create(path, func(w *gguf.Writer) error {
		if err := writeTinyKeys(w); err != nil {
			return err
		}
		add := func(name string, dims ...uint64) error {
			n := 1
			for _, d := range dims {
				n *= int(d)
			}
			typ := quant.F32
			if len(dims) == 2 {
				typ = quant.Q4_1
			}
			v := random(rng, n)
			for i := range v {
				v[i] *= 0.2
				if len(dims) == 1 {
					v[i]++
				}
			}
			size, err := typ.RowBytes(n)
			if err != nil {
				return err
			}
			data := make([]byte, size)
			if err := quant.Encode(typ, data, v); err != nil {
				return err
			}
			return w.Add(name, dims, typ, data)
		}
		return writeTinyTensors(add)
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func writeTinyKeys(w *gguf.Writer) error {
	for _, kv := range []struct {
		key   string
		value any
	}{
		{"general.architecture", "gemma3"},
		{"gemma3.block_count", uint32(tinyLayers)},
		{"gemma3.embedding_length", uint32(tinyWidth)},
		{"gemma3.attention.head_count", uint32(tinyHeads)},
		{"gemma3.attention.head_count_kv", uint32(tinyKV)},
		{"gemma3.attention.key_length", uint32(tinyDim)},
		{"gemma3.attention.value_length", uint32(tinyDim)},
		{"gemma3.feed_forward_length", uint32(tinyFF)},
		{"gemma3.context_length", uint32(128)},
		{"gemma3.attention.layer_norm_rms_epsilon", float32(1e-6)},
		{"gemma3.attention.sliding_window", uint32(8)},
	} {
		if err := w.Set(kv.key, kv.value); err != nil {
			return err
		}
	}
	return nil
}

func writeTinyTensors(add func(name string, dims ...uint64) error) error {
	type tensor struct {
		name string
		dims []uint64
	}
	list := []tensor{{"token_embd.weight", []uint64{tinyWidth, tinyVocab}}, {"output_norm.weight", []uint64{tinyWidth}}}
	for i := range tinyLayers {
		p := fmt.Sprintf("blk.%d.", i)
		for _, n := range []string{"attn_norm", "ffn_norm", "post_attention_norm", "post_ffw_norm"} {
			list = append(list, tensor{p + n + ".weight", []uint64{tinyWidth}})
		}
		list = append(list,
			tensor{p + "attn_q_norm.weight", []uint64{tinyDim}},
			tensor{p + "attn_k_norm.weight", []uint64{tinyDim}},
			tensor{p + "attn_q.weight", []uint64{tinyWidth, tinyHeads * tinyDim}},
			tensor{p + "attn_k.weight", []uint64{tinyWidth, tinyKV * tinyDim}},
			tensor{p + "attn_v.weight", []uint64{tinyWidth, tinyKV * tinyDim}},
			tensor{p + "attn_output.weight", []uint64{tinyHeads * tinyDim, tinyWidth}},
			tensor{p + "ffn_gate.weight", []uint64{tinyWidth, tinyFF}},
			tensor{p + "ffn_up.weight", []uint64{tinyWidth, tinyFF}},
			tensor{p + "ffn_down.weight", []uint64{tinyFF, tinyWidth}})
	}
	for _, x := range list {
		if err := add(x.name, x.dims...); err != nil {
			return err
		}
	}
	return nil
}

// loadTiny loads the model, the layers before the last on a CPU backend where there is
// one.
func loadTiny(path string, ops model.Ops, host ...model.Ops) (*model.Llama, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	cfg := model.LoadConfig{Blocks: 4}
	if _, ok := ops.(*Backend); ok {
		cfg.Slots = 2
	}
	for _, h := range host {
		cfg.Before = []model.Stage{{Ops: h, Layers: tinyLayers - 1}}
	}
	return model.LoadDecoder(context.Background(), f, ops, cfg)
}
