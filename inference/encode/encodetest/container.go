package encodetest

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ragd/inference/gguf"
	"ragd/inference/quant"
)

// The pooling of a GGUF file: rank, by a classification head, or mean.
const (
	poolMean = 1
	poolRank = 4
)

func (m Model) writeGGUF(path string, types int, v vocabulary, list []part) error {
	return gguf.Create(path, func(w *gguf.Writer) error {
		pooling := uint32(poolRank)
		if m.Head == NoHead {
			pooling = poolMean
		}
		keys := map[string]any{
			"general.architecture": "bert", "general.name": "tiny reranker", "bert.block_count": uint32(m.Shape.Layers), "bert.embedding_length": uint32(m.Shape.Width),
			"bert.attention.head_count": uint32(m.Shape.Heads), "bert.feed_forward_length": uint32(m.Shape.FeedForward), "bert.context_length": uint32(m.Shape.Context),
			"bert.attention.layer_norm_epsilon": float32(1e-12), "bert.attention.causal": false, "bert.pooling_type": pooling,
			"tokenizer.ggml.token_type_count": uint32(types),
		}
		maps.Copy(keys, v.keys())
		var errs []error
		for key, value := range keys {
			errs = append(errs, w.Set(key, value))
		}
		for _, p := range list {
			errs = append(errs, m.add(w, p))
		}
		return errors.Join(errs...)
	})
}

// add stores a tensor; vectors stay float32.
func (m Model) add(w *gguf.Writer, p part) error {
	typ, x, dims := quant.F32, p.values(), make([]uint64, len(p.dims))
	for i, d := range p.dims {
		dims[len(dims)-1-i] = uint64(d)
	}
	if len(dims) == 2 {
		typ = m.Type
	}
	row, err := typ.RowBytes(int(dims[0]))
	if err != nil {
		return err
	}
	data := make([]byte, len(x)/int(dims[0])*row)
	if err := quant.Encode(typ, data, x); err != nil {
		return err
	}
	return w.Add(p.name, dims, typ, data)
}

// keys is the vocabulary as GGUF holds it.
func (v vocabulary) keys() map[string]any {
	const control, unknown, normal = 3, 2, 1
	spellings, kinds := make([]string, len(v.spellings)), make([]int32, len(v.spellings))
	for i, s := range v.spellings {
		spellings[i], kinds[i] = s, normal
		rest, goesOn := strings.CutPrefix(s, "##")
		switch {
		case s == "<unk>" || s == "[UNK]":
			kinds[i] = unknown
		case len(s) > 2 && (s[0] == '<' || s[0] == '['):
			kinds[i] = control
		case v.scores == nil && goesOn:
			spellings[i] = rest
		case v.scores == nil:
			spellings[i] = "▁" + s
		}
	}
	out := map[string]any{"tokenizer.ggml.tokens": spellings, "tokenizer.ggml.token_type": kinds}
	if v.scores == nil {
		maps.Copy(out, map[string]any{
			"tokenizer.ggml.model": "bert", "tokenizer.ggml.unknown_token_id": uint32(1), "tokenizer.ggml.cls_token_id": uint32(2),
			"tokenizer.ggml.bos_token_id": uint32(2), "tokenizer.ggml.eos_token_id": uint32(3),
			"tokenizer.ggml.seperator_token_id": uint32(3), "tokenizer.ggml.padding_token_id": uint32(0), "tokenizer.ggml.mask_token_id": uint32(4),
		})
		return out
	}
	maps.Copy(out, map[string]any{
		"tokenizer.ggml.model": "t5", "tokenizer.ggml.pre": "default", "tokenizer.ggml.scores": v.scores, "tokenizer.ggml.bos_token_id": uint32(0),
		"tokenizer.ggml.eos_token_id": uint32(2), "tokenizer.ggml.unknown_token_id": uint32(3), "tokenizer.ggml.padding_token_id": uint32(1),
		"tokenizer.ggml.seperator_token_id": uint32(2), "tokenizer.ggml.add_bos_token": true, "tokenizer.ggml.add_eos_token": true,
		"tokenizer.ggml.add_sep_token": true, "tokenizer.ggml.add_space_prefix": true, "tokenizer.ggml.remove_extra_whitespaces": true,
	})
	return out
}

// padding is the id of the padding token of the XLM-RoBERTa model, after which
// its positions are numbered.
const padding = 1

func (m Model) writeFolder(t testing.TB, dir string, f family, list []part) {
	t.Helper()
	skip, prefix := 0, "bert."
	if m.Family == XLMRoBERTa {
		skip, prefix = padding+1, "roberta."
	}
	header, data := map[string]any{}, []byte(nil)
	for _, p := range list {
		from, x := len(data), p.values()
		if p.name == "position_embd.weight" {
			x = append(make([]float32, skip*m.Shape.Width), x...)
			p.dims = []int{p.dims[0] + skip, m.Shape.Width}
		}
		for _, v := range x {
			data = binary.LittleEndian.AppendUint32(data, math.Float32bits(v))
		}
		header[m.folderName(prefix, p.name)] = map[string]any{"dtype": "F32", "shape": p.dims, "data_offsets": []int{from, len(data)}}
	}
	config := map[string]any{
		"model_type": string(m.Family), "num_hidden_layers": m.Shape.Layers, "hidden_size": m.Shape.Width, "num_attention_heads": m.Shape.Heads,
		"intermediate_size":       m.Shape.FeedForward,
		"max_position_embeddings": m.Shape.Context + skip, "layer_norm_eps": 1e-12, "hidden_act": "gelu", "pad_token_id": padding,
	}
	maps.Copy(config, m.Config)
	head := marshal(t, header)
	file := binary.LittleEndian.AppendUint64(nil, uint64(len(head)))
	for name, content := range map[string][]byte{
		"model.safetensors": append(append(file, head...), data...), "config.json": marshal(t, config), "tokenizer.json": f.Tokenizer,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// folderNames are Hugging Face's names of what GGUF names otherwise.
var folderNames = strings.NewReplacer(
	"token_embd_norm", "embeddings.LayerNorm", "token_embd", "embeddings.word_embeddings", "position_embd", "embeddings.position_embeddings",
	"token_types", "embeddings.token_type_embeddings", "blk.", "encoder.layer.", "attn_output_norm", "attention.output.LayerNorm",
	"attn_output", "attention.output.dense", "attn_q", "attention.self.query", "attn_k", "attention.self.key", "attn_v", "attention.self.value",
	"ffn_up", "intermediate.dense", "ffn_down", "output.dense", "layer_output_norm", "output.LayerNorm",
)

func (m Model) folderName(prefix, name string) string {
	end, isHead := strings.CutPrefix(name, "cls.")
	output, isOutput := strings.CutPrefix(end, "output.")
	switch {
	case isOutput && m.Family == BERT:
		return "classifier." + output
	case isOutput:
		return "classifier.out_proj." + output
	case isHead && m.Family == BERT:
		return "bert.pooler.dense." + end
	case isHead:
		return "classifier.dense." + end
	}
	return prefix + folderNames.Replace(name)
}

func marshal(t testing.TB, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
