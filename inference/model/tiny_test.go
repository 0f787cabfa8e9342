package model_test

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"ragd/inference/gguf"
	"ragd/inference/quant"
)

// tinyModel is the shape of a random-weight model; testdata/reference.py makes the
// same weights from the same names.
type tinyModel struct {
	arch                                     string
	width, layers, heads, kv, dim, ff, vocab int
	bias, qkNorm, post, tied, factors        bool
	keys                                     map[string]any
	typ                                      quant.Type // of the matrices; F32 in the reference
	extra                                    string     // a tensor that no family has
	claimFF                                  int        // feed-forward length in the metadata, when it lies
}

var tinyModels = map[string]tinyModel{
	"mistral": {
		arch: "llama", width: 64, layers: 3, heads: 4, kv: 2, dim: 16, ff: 96, vocab: 160,
		keys: map[string]any{"rope.freq_base": float32(1e6), "rope.dimension_count": uint32(16), "attention.sliding_window": uint32(24)},
	},
	"llama3": {
		arch: "llama", width: 64, layers: 2, heads: 8, kv: 2, dim: 16, ff: 96, vocab: 160, tied: true, factors: true,
		keys: map[string]any{"rope.freq_base": float32(5e5), "rope.dimension_count": uint32(16)},
	},
	"qwen2": {
		arch: "qwen2", width: 64, layers: 2, heads: 4, kv: 1, dim: 16, ff: 96, vocab: 160, bias: true, tied: true,
		keys: map[string]any{"rope.freq_base": float32(1e6)},
	},
	"qwen3": {
		arch: "qwen3", width: 64, layers: 2, heads: 4, kv: 2, dim: 32, ff: 96, vocab: 160, qkNorm: true,
		keys: map[string]any{"rope.freq_base": float32(1e6)},
	},
	"gemma3": {
		arch: "gemma3", width: 64, layers: 7, heads: 4, kv: 1, dim: 32, ff: 96, vocab: 160, qkNorm: true, post: true, tied: true,
		keys: map[string]any{"rope.freq_base": float32(1e6), "attention.sliding_window": uint32(20), "rope.scaling.type": "linear", "rope.scaling.factor": float32(8)},
	},
}

// noise is splitmix64 over an FNV-1a hash of name, as floats in [-1, 1).
func noise(name string, n int) []float32 {
	seed := uint64(14695981039346656037)
	for _, c := range []byte(name) {
		seed = (seed ^ uint64(c)) * 1099511628211
	}
	out := make([]float32, n)
	for i := range out {
		z := seed + uint64(i+1)*0x9E3779B97F4A7C15
		z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
		z = (z ^ z>>27) * 0x94D049BB133111EB
		z ^= z >> 31
		out[i] = float32(float64(z>>40)/(1<<23) - 1)
	}
	return out
}

// tinyWriter writes the tensors of a tiny model and keeps the first error.
type tinyWriter struct {
	*gguf.Writer
	typ quant.Type // of matrices
	err error
}

func (w *tinyWriter) set(key string, v any) {
	if w.err == nil {
		w.err = w.Set(key, v)
	}
}

// add writes noise mapped by f; dims are rows and columns, or one length.
func (w *tinyWriter) add(name string, f func(float32) float32, dims ...int) {
	n, ggml := 1, []uint64(nil)
	for i := range dims {
		n *= dims[i]
		ggml = append(ggml, uint64(dims[len(dims)-1-i]))
	}
	x := noise(name, n)
	for i := range x {
		x[i] = f(x[i])
	}
	typ := quant.F32
	if len(dims) == 2 {
		typ = w.typ
	}
	row, err := typ.RowBytes(dims[len(dims)-1])
	data := make([]byte, n/dims[len(dims)-1]*row)
	w.err = errors.Join(w.err, err, quant.Encode(typ, data, x))
	if w.err == nil {
		w.err = w.Add(name, ggml, typ, data)
	}
}

func plain(x float32) float32 { return x }
func gain(x float32) float32  { return 1 + x/2 }

func (w *tinyWriter) matrix(name string, rows, cols int) {
	s := float32(2 / math.Sqrt(float64(cols)))
	w.add(name, func(x float32) float32 { return x * s }, rows, cols)
}

// writeTiny writes the model to a file of the test and returns its path.
func writeTiny(t testing.TB, c tinyModel) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), c.arch+".gguf")
	if err := gguf.Create(path, func(w *gguf.Writer) error { return c.write(&tinyWriter{Writer: w, typ: c.typ}) }); err != nil {
		t.Fatal(err)
	}
	return path
}

func (c tinyModel) write(w *tinyWriter) error {
	w.set("general.architecture", c.arch)
	if c.extra != "" {
		w.matrix(c.extra, c.width, c.width)
	}
	ff := c.ff
	if c.claimFF > 0 {
		ff = c.claimFF
	}
	for key, n := range map[string]int{
		"block_count": c.layers, "embedding_length": c.width, "attention.head_count": c.heads, "attention.head_count_kv": c.kv,
		"feed_forward_length": ff, "attention.key_length": c.dim, "attention.value_length": c.dim, "context_length": 512,
	} {
		w.set(c.arch+"."+key, uint32(n))
	}
	w.set(c.arch+".attention.layer_norm_rms_epsilon", float32(1e-5))
	for key, v := range c.keys {
		w.set(c.arch+"."+key, v)
	}
	w.add("token_embd.weight", plain, c.vocab, c.width)
	w.add("output_norm.weight", gain, c.width)
	if !c.tied {
		w.matrix("output.weight", c.vocab, c.width)
	}
	if c.factors {
		w.add("rope_freqs.weight", func(x float32) float32 { return 2 + x }, c.dim/2)
	}
	for i := range c.layers {
		c.writeLayer(w, fmt.Sprintf("blk.%d.", i))
	}
	return w.err
}

func (c tinyModel) writeLayer(w *tinyWriter, p string) {
	norms := []string{"attn_norm", "ffn_norm"}
	if c.post {
		norms = append(norms, "post_attention_norm", "post_ffw_norm")
	}
	for _, n := range norms {
		w.add(p+n+".weight", gain, c.width)
	}
	if c.qkNorm {
		w.add(p+"attn_q_norm.weight", gain, c.dim)
		w.add(p+"attn_k_norm.weight", gain, c.dim)
	}
	w.matrix(p+"attn_q.weight", c.heads*c.dim, c.width)
	w.matrix(p+"attn_k.weight", c.kv*c.dim, c.width)
	w.matrix(p+"attn_v.weight", c.kv*c.dim, c.width)
	w.matrix(p+"attn_output.weight", c.width, c.heads*c.dim)
	w.matrix(p+"ffn_gate.weight", c.ff, c.width)
	w.matrix(p+"ffn_up.weight", c.ff, c.width)
	w.matrix(p+"ffn_down.weight", c.width, c.ff)
	if c.bias {
		w.add(p+"attn_q.bias", plain, c.heads*c.dim)
		w.add(p+"attn_k.bias", plain, c.kv*c.dim)
		w.add(p+"attn_v.bias", plain, c.kv*c.dim)
	}
}

// writeTinyBERT writes the encoder of the reference's tinybert.
func writeTinyBERT(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bert.gguf")
	err := gguf.Create(path, func(out *gguf.Writer) error {
		w := &tinyWriter{Writer: out}
		w.set("general.architecture", "bert")
		for key, n := range map[string]int{
			"block_count": 2, "embedding_length": tinyWidth, "attention.head_count": 4, "feed_forward_length": tinyFF,
			"context_length": 40, "pooling_type": 1,
		} {
			w.set("bert."+key, uint32(n))
		}
		w.set("bert.attention.layer_norm_epsilon", float32(1e-12))
		w.add("token_embd.weight", plain, 120, tinyWidth)
		w.add("position_embd.weight", plain, 40, tinyWidth)
		w.add("token_types.weight", plain, 2, tinyWidth)
		w.layerNorm("token_embd_norm")
		for i := range 2 {
			w.encoderLayer(fmt.Sprintf("blk.%d.", i))
		}
		w.biased("cls", tinyWidth, tinyWidth)
		w.biased("cls.output", 3, tinyWidth)
		return w.err
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

const tinyWidth, tinyFF = 48, 80

func (w *tinyWriter) layerNorm(name string) {
	w.add(name+".weight", gain, tinyWidth)
	w.add(name+".bias", plain, tinyWidth)
}

func (w *tinyWriter) biased(name string, rows, cols int) {
	w.matrix(name+".weight", rows, cols)
	w.add(name+".bias", plain, rows)
}

func (w *tinyWriter) encoderLayer(p string) {
	for _, name := range []string{"attn_q", "attn_k", "attn_v", "attn_output"} {
		w.biased(p+name, tinyWidth, tinyWidth)
	}
	w.biased(p+"ffn_up", tinyFF, tinyWidth)
	w.biased(p+"ffn_down", tinyWidth, tinyFF)
	w.layerNorm(p + "attn_output_norm")
	w.layerNorm(p + "layer_output_norm")
}
