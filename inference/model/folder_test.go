package model_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ragd/inference/cpu"
	"ragd/inference/model"
)

// folderWriter collects tensors of a safetensors file.
type folderWriter struct {
	header map[string]any
	data   []byte
}

// add stores the noise that the reference's tinybert has under GGUF's name, after
// skip rows of something else.
func (w *folderWriter) add(name, ggufName string, f func(float32) float32, skip int, shape ...int) {
	n := 1
	for _, d := range shape {
		n *= d
	}
	from := len(w.data)
	for range skip * shape[len(shape)-1] {
		w.data = binary.LittleEndian.AppendUint32(w.data, math.Float32bits(99))
	}
	for _, x := range noise(ggufName, n) {
		w.data = binary.LittleEndian.AppendUint32(w.data, math.Float32bits(f(x)))
	}
	shape[0] += skip
	w.header[name] = map[string]any{"dtype": "F32", "shape": shape, "data_offsets": []int{from, len(w.data)}}
}

func (w *folderWriter) linear(name, ggufName string, rows, cols int) {
	s := float32(2 / math.Sqrt(float64(cols)))
	w.add(name+".weight", ggufName+".weight", func(x float32) float32 { return x * s }, 0, rows, cols)
	w.add(name+".bias", ggufName+".bias", plain, 0, rows)
}

func (w *folderWriter) norm(name, ggufName string) {
	w.add(name+".weight", ggufName+".weight", gain, 0, tinyWidth)
	w.add(name+".bias", ggufName+".bias", plain, 0, tinyWidth)
}

func (w *folderWriter) layer(p, g string) {
	w.linear(p+"attention.self.query", g+"attn_q", tinyWidth, tinyWidth)
	w.linear(p+"attention.self.key", g+"attn_k", tinyWidth, tinyWidth)
	w.linear(p+"attention.self.value", g+"attn_v", tinyWidth, tinyWidth)
	w.linear(p+"attention.output.dense", g+"attn_output", tinyWidth, tinyWidth)
	w.norm(p+"attention.output.LayerNorm", g+"attn_output_norm")
	w.linear(p+"intermediate.dense", g+"ffn_up", tinyFF, tinyWidth)
	w.linear(p+"output.dense", g+"ffn_down", tinyWidth, tinyFF)
	w.norm(p+"output.LayerNorm", g+"layer_output_norm")
}

// folderKind is what differs between the families' folders.
type folderKind struct {
	modelType, prefix, dense, out string
	skip                          int
}

var folderKinds = []folderKind{
	{"bert", "bert.", "bert.pooler.dense", "classifier", 0},
	{"xlm-roberta", "roberta.", "classifier.dense", "classifier.out_proj", 2},
}

// writeFolder writes the reference's tinybert the way Hugging Face stores it.
func writeFolder(t *testing.T, k folderKind, config map[string]any) string {
	t.Helper()
	w := &folderWriter{header: map[string]any{}}
	w.add(k.prefix+"embeddings.word_embeddings.weight", "token_embd.weight", plain, 0, 120, tinyWidth)
	w.add(k.prefix+"embeddings.position_embeddings.weight", "position_embd.weight", plain, k.skip, 40, tinyWidth)
	w.add(k.prefix+"embeddings.token_type_embeddings.weight", "token_types.weight", plain, 0, 2, tinyWidth)
	w.norm(k.prefix+"embeddings.LayerNorm", "token_embd_norm")
	for i := range 2 {
		w.layer(fmt.Sprintf("%sencoder.layer.%d.", k.prefix, i), fmt.Sprintf("blk.%d.", i))
	}
	w.linear(k.dense, "cls", tinyWidth, tinyWidth)
	w.linear(k.out, "cls.output", 3, tinyWidth)
	header, err := json.Marshal(w.header)
	if err != nil {
		t.Fatal(err)
	}
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	file = append(append(file, header...), w.data...)
	all := map[string]any{
		"model_type": k.modelType, "num_hidden_layers": 2, "hidden_size": tinyWidth, "num_attention_heads": 4, "intermediate_size": tinyFF,
		"max_position_embeddings": 40 + k.skip, "layer_norm_eps": 1e-12, "hidden_act": "gelu", "pad_token_id": 1,
	}
	for key, v := range config {
		all[key] = v
	}
	dir := t.TempDir()
	put(t, dir, "model.safetensors", file)
	put(t, dir, "config.json", mustJSON(t, all))
	put(t, dir, "1_Pooling/config.json", []byte(`{"pooling_mode_mean_tokens": true}`))
	put(t, dir, "modules.json", []byte(`[{"path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}]`))
	put(t, dir, "config_sentence_transformers.json", []byte(`{"prompts": {"query": "q: ", "document": "d: "}}`))
	return dir
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func put(t *testing.T, dir, name string, data []byte) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600)); err != nil {
		t.Fatal(err)
	}
}

func loadFolder(t *testing.T, dir string) (*model.BERT, error) {
	t.Helper()
	ops, err := cpu.New(cpu.Config{Threads: 1, Float32: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ops.Close() })
	return model.LoadEncoderFolder(context.Background(), dir, ops)
}

// Folders of both families give what the GGUF file of the same weights gives.
func TestFolderAgainstReference(t *testing.T) {
	for _, kind := range folderKinds {
		t.Run(kind.modelType, func(t *testing.T) {
			m, err := loadFolder(t, writeFolder(t, kind, nil))
			if err != nil {
				t.Fatal(err)
			}
			if c := m.Config(); c.Context != 40 || c.Labels != 3 || !c.Unit || c.QueryPrefix != "q: " || c.PassagePrefix != "d: " {
				t.Errorf("configuration %+v", c)
			}
			for _, c := range readGolden[bertCase](t, "tinybert_golden.json") {
				text := []model.Text{{Tokens: c.Tokens, Second: c.Second}}
				vectors, err := m.Embed(text)
				if err != nil {
					t.Fatal(err)
				}
				if d := maxDiff(vectors[0], c.Embedding); d > 1e-5 {
					t.Errorf("%d tokens: embedding differs by %g", len(c.Tokens), d)
				}
				scores, err := m.Score(text)
				if err != nil {
					t.Fatal(err)
				}
				if d := maxDiff(scores[0], c.Scores); d > 1e-4 {
					t.Errorf("%d tokens: scores differ by %g", len(c.Tokens), d)
				}
			}
		})
	}
}

func TestFolderRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		config map[string]any
		want   error
		text   string
	}{
		"activation": {map[string]any{"hidden_act": "relu"}, model.ErrConfig, "relu"},
		"positions":  {map[string]any{"position_embedding_type": "relative_key"}, model.ErrConfig, "relative_key"},
		"heads":      {map[string]any{"num_attention_heads": 5}, model.ErrConfig, "no multiple of 5 heads"},
		"no layers":  {map[string]any{"num_hidden_layers": 0}, model.ErrConfig, "num_hidden_layers is 0"},
		"padding":    {map[string]any{"pad_token_id": -7}, model.ErrConfig, "pad_token_id is -7"},
		"absurd":     {map[string]any{"num_hidden_layers": 1 << 24}, model.ErrConfig, "num_hidden_layers is 16777216 (1 to 1024)"},
		"layers":     {map[string]any{"num_hidden_layers": 1}, model.ErrTensor, "belongs to no part"},
		"more":       {map[string]any{"num_hidden_layers": 3}, model.ErrTensor, "blk.2.attn_q.weight is missing"},
		"width":      {map[string]any{"intermediate_size": 64}, model.ErrTensor, "80×48"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := writeFolder(t, folderKinds[0], c.config)
			_, err := loadFolder(t, dir)
			if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("error %v, want %q", err, c.text)
			}
		})
	}
	_, err := loadFolder(t, writeFolder(t, folderKinds[0], map[string]any{"model_type": "deberta"}))
	var unknown *model.UnknownArchitectureError
	if !errors.As(err, &unknown) || unknown.Architecture != "deberta" {
		t.Errorf("unknown family: %v", err)
	}
}
