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
	"ragd/inference/quant"
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

// tinyModel is the shape of a random-weight model; testdata/reference.py makes the
// same weights from the same names.
type tinyModel struct {
	arch                                     string
	width, layers, heads, kv, dim, ff, vocab int
	bias, qkNorm, post, tied, factors        bool
	keys                                     map[string]any
}

var tinyModels = map[string]tinyModel{
	"mistral": {arch: "llama", width: 64, layers: 3, heads: 4, kv: 2, dim: 16, ff: 96, vocab: 160,
		keys: map[string]any{"rope.freq_base": float32(1e6), "rope.dimension_count": uint32(16), "attention.sliding_window": uint32(24)}},
	"llama3": {arch: "llama", width: 64, layers: 2, heads: 8, kv: 2, dim: 16, ff: 96, vocab: 160, tied: true, factors: true,
		keys: map[string]any{"rope.freq_base": float32(5e5), "rope.dimension_count": uint32(16)}},
	"qwen2": {arch: "qwen2", width: 64, layers: 2, heads: 4, kv: 1, dim: 16, ff: 96, vocab: 160, bias: true, tied: true,
		keys: map[string]any{"rope.freq_base": float32(1e6)}},
	"qwen3": {arch: "qwen3", width: 64, layers: 2, heads: 4, kv: 2, dim: 32, ff: 96, vocab: 160, qkNorm: true,
		keys: map[string]any{"rope.freq_base": float32(1e6)}},
	"gemma3": {arch: "gemma3", width: 64, layers: 7, heads: 4, kv: 1, dim: 32, ff: 96, vocab: 160, qkNorm: true, post: true, tied: true,
		keys: map[string]any{"rope.freq_base": float32(1e6), "attention.sliding_window": uint32(20), "rope.scaling.type": "linear", "rope.scaling.factor": float32(8)}},
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
	data := make([]byte, 4*n)
	if err := quant.Encode(quant.F32, data, x); err != nil && w.err == nil {
		w.err = err
	}
	if w.err == nil {
		w.err = w.Add(name, ggml, quant.F32, data)
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
	if err := gguf.Create(path, func(w *gguf.Writer) error { return c.write(&tinyWriter{Writer: w}) }); err != nil {
		t.Fatal(err)
	}
	return path
}

func (c tinyModel) write(w *tinyWriter) error {
	w.set("general.architecture", c.arch)
	for key, n := range map[string]int{
		"block_count": c.layers, "embedding_length": c.width, "attention.head_count": c.heads, "attention.head_count_kv": c.kv,
		"feed_forward_length": c.ff, "attention.key_length": c.dim, "attention.value_length": c.dim, "context_length": 512,
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
		c.writeLayer(w, "blk."+string(rune('0'+i))+".")
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
