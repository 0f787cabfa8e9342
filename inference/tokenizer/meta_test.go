package tokenizer_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
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

// visible is GPT-2's printable character for each byte, as vocabularies spell
// them.
func visible(text string) string {
	var out []rune
	for _, b := range []byte(text) {
		r := rune(b)
		switch {
		case b <= 0x20:
			r = 0x100 + rune(b)
		case b >= 0x7f && b <= 0xa0:
			r = 0x121 + rune(b-0x7f)
		case b == 0xad:
			r = 0x143
		}
		out = append(out, r)
	}
	return string(out)
}

// Control tokens of smallBPE behind the 256 bytes and the merged tokens.
var smallControls = []string{"<s>", "<|im_start|>", "<|im_end|>", "<|im_end|>x"}

// smallBPE is a byte-level vocabulary of all bytes, a few merges, one
// user-defined token and smallControls.
func smallBPE(pre string) meta {
	var tokens, merges []string
	var types []int64
	add := func(s string, kind int64) {
		tokens, types = append(tokens, s), append(types, kind)
	}
	for b := range 256 {
		add(visible(string([]byte{byte(b)})), 1)
	}
	for _, m := range [][2]string{{"h", "e"}, {"l", "l"}, {"he", "ll"}, {"hell", "o"}, {" ", "w"}, {"o", "r"}, {" w", "or"}, {"<", "s"}, {"<s", ">"}} {
		merges = append(merges, visible(m[0])+" "+visible(m[1]))
		if m[0]+m[1] != "<s>" {
			add(visible(m[0]+m[1]), 1)
		}
	}
	add("<think>", 4)
	for _, s := range smallControls {
		add(s, 3)
	}
	id := func(s string) uint64 {
		return uint64(len(tokens) - len(smallControls) + slices.Index(smallControls, s))
	}
	return meta{
		"tokenizer.ggml.model":        "gpt2",
		"tokenizer.ggml.pre":          pre,
		"tokenizer.ggml.tokens":       tokens,
		"tokenizer.ggml.token_type":   types,
		"tokenizer.ggml.merges":       merges,
		"tokenizer.ggml.bos_token_id": id("<s>"),
		"tokenizer.ggml.eos_token_id": id("<|im_end|>"),
	}
}

// smallUnigram is a unigram vocabulary with BOS and EOS as XLM-RoBERTa has them.
func smallUnigram() meta {
	return meta{
		"tokenizer.ggml.model":                    "t5",
		"tokenizer.ggml.tokens":                   []string{"<s>", "<pad>", "</s>", "<unk>", "▁", "▁he", "llo", "▁hello", "l", "o", "▁wor", "ld", "h", "e", "가", "<mask>"},
		"tokenizer.ggml.scores":                   []float32{0, 0, 0, 0, -2, -4, -5, -7, -5, -5, -6, -6, -6, -6, -9, 0},
		"tokenizer.ggml.token_type":               []int64{3, 3, 3, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3},
		"tokenizer.ggml.add_space_prefix":         true,
		"tokenizer.ggml.remove_extra_whitespaces": true,
		"tokenizer.ggml.add_bos_token":            true,
		"tokenizer.ggml.add_eos_token":            true,
		"tokenizer.ggml.bos_token_id":             uint64(0),
		"tokenizer.ggml.eos_token_id":             uint64(2),
		"tokenizer.ggml.unknown_token_id":         uint64(3),
		"tokenizer.ggml.padding_token_id":         uint64(1),
		"tokenizer.ggml.cls_token_id":             uint64(0),
		"tokenizer.ggml.seperator_token_id":       uint64(2),
		"tokenizer.ggml.mask_token_id":            uint64(15),
	}
}

// smallBERT is a WordPiece vocabulary in the spelling of GGUF.
func smallBERT() meta {
	return meta{
		"tokenizer.ggml.model":              "bert",
		"tokenizer.ggml.tokens":             []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "▁un", "able", "▁able", "▁,", "▁中", "▁cafe", "▁un##", "▁["},
		"tokenizer.ggml.token_type":         []int64{3, 3, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
		"tokenizer.ggml.unknown_token_id":   uint64(1),
		"tokenizer.ggml.cls_token_id":       uint64(2),
		"tokenizer.ggml.bos_token_id":       uint64(2),
		"tokenizer.ggml.seperator_token_id": uint64(3),
		"tokenizer.ggml.padding_token_id":   uint64(0),
		"tokenizer.ggml.mask_token_id":      uint64(4),
	}
}
