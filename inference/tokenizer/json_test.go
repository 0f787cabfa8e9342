package tokenizer_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"ragd/inference/tokenizer"
)

// object is a piece of JSON.
type object = map[string]any

func encodeJSON(tb testing.TB, v any) []byte {
	tb.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		tb.Fatal(err)
	}
	return data
}

const modernPattern = `(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+`

func splitOn(pattern string) object {
	return object{"type": "Sequence", "pretokenizers": []object{
		{"type": "Split", "pattern": object{"Regex": pattern}, "behavior": "Isolated", "invert": false},
		{"type": "ByteLevel", "add_prefix_space": false, "use_regex": false},
	}}
}

// jsonBPE is smallBPE("qwen2") as tokenizer.json holds it.
func jsonBPE() object {
	m := smallBPE("qwen2")
	tokens, types := m["tokenizer.ggml.tokens"].([]string), m["tokenizer.ggml.token_type"].([]int64)
	vocab := object{}
	var added []object
	for id, s := range tokens {
		if types[id] == 1 {
			vocab[s] = id
			continue
		}
		added = append(added, object{"id": id, "content": s, "special": types[id] == 3})
	}
	return object{
		"added_tokens":  added,
		"normalizer":    object{"type": "NFC"},
		"pre_tokenizer": splitOn(modernPattern),
		"model":         object{"type": "BPE", "vocab": vocab, "merges": m["tokenizer.ggml.merges"]},
	}
}

func with(o object, key string, value any) object {
	out := maps.Clone(o)
	out[key] = value
	return out
}

func TestFromJSONBPE(t *testing.T) {
	config := encodeJSON(t, object{"bos_token": object{"content": "<s>"}, "eos_token": "<|im_end|>"})
	tok, err := tokenizer.FromJSON(encodeJSON(t, jsonBPE()), config)
	if err != nil {
		t.Fatal(err)
	}
	same := load(t, smallBPE("qwen2"))
	for _, s := range []string{"hello world 12", "<think>hello<s>", "it'S  x\n\n", "가나"} {
		if got, want := tok.Encode(nil, s), same.Encode(nil, s); !slices.Equal(got, want) {
			t.Errorf("%q: %v from JSON, %v from GGUF", s, got, want)
		}
		if got, want := tok.EncodeScaffold(nil, s), same.EncodeScaffold(nil, s); !slices.Equal(got, want) {
			t.Errorf("scaffold %q: %v from JSON, %v from GGUF", s, got, want)
		}
	}
	if got, want := tok.Special().EOS, same.Special().EOS; got != want {
		t.Errorf("EOS %d, want %d", got, want)
	}
	if got, want := tok.Encode(nil, "e\u0301"), tok.Encode(nil, "é"); !slices.Equal(got, want) {
		t.Errorf("NFC: %v for the composed form %v", got, want)
	}
}

// jsonSentencePiece is a BPE of characters with byte fallback.
func jsonSentencePiece(normalizer object) object {
	return object{
		"added_tokens": []object{{"id": 0, "content": "<unk>", "special": true}, {"id": 1, "content": "<s>", "special": true}},
		"normalizer":   normalizer,
		"post_processor": object{
			"type":           "TemplateProcessing",
			"single":         []object{{"SpecialToken": object{"id": "<s>", "type_id": 0}}, {"Sequence": object{"id": "A", "type_id": 0}}},
			"special_tokens": object{"<s>": object{"id": "<s>", "ids": []int{1}}},
		},
		"model": object{
			"type": "BPE", "byte_fallback": true, "unk_token": "<unk>",
			"vocab":  object{"<unk>": 0, "<s>": 1, "<0xC3>": 2, "<0xA9>": 3, "▁": 4, "a": 5, "b": 6, "ab": 7, "▁ab": 8, "<": 9, "s": 10, ">": 11, "<s": 12},
			"merges": [][]string{{"a", "b"}, {"▁", "ab"}, {"<", "s"}, {"<s", ">"}},
		},
	}
}

func TestFromJSONSentencePiece(t *testing.T) {
	replace := object{"type": "Replace", "pattern": object{"String": " "}, "content": "▁"}
	prepend := object{"type": "Sequence", "normalizers": []object{{"type": "Prepend", "prepend": "▁"}, replace}}
	tests := []struct {
		normalizer object
		text       string
		want       []int32
	}{
		{replace, "ab ab", []int32{7, 8}},
		{prepend, "ab ab", []int32{8, 8}},
		{replace, "é", []int32{2, 3}},
		{replace, "<s>", []int32{12, 11}},
		{replace, "字", []int32{0, 0, 0}},
	}
	for _, tt := range tests {
		tok, err := tokenizer.FromJSON(encodeJSON(t, jsonSentencePiece(tt.normalizer)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := tok.Encode(nil, tt.text); !slices.Equal(got, tt.want) {
			t.Errorf("%q: %v, want %v", tt.text, got, tt.want)
		}
		if s := tok.Special(); !s.AddBOS || s.BOS != 1 || s.AddEOS {
			t.Errorf("roles from the template: %+v", s)
		}
	}
}

// jsonUnigram is smallUnigram as tokenizer.json holds it.
func jsonUnigram(charsmap []byte) object {
	m := smallUnigram()
	var vocab [][2]any
	for i, s := range m["tokenizer.ggml.tokens"].([]string) {
		vocab = append(vocab, [2]any{s, m["tokenizer.ggml.scores"].([]float32)[i]})
	}
	var added []object
	for _, id := range []int{0, 1, 2, 3, 15} {
		added = append(added, object{"id": id, "content": vocab[id][0], "special": true})
	}
	return object{
		"added_tokens": added,
		"normalizer":   object{"type": "Precompiled", "precompiled_charsmap": base64.StdEncoding.EncodeToString(charsmap)},
		"pre_tokenizer": object{"type": "Sequence", "pretokenizers": []object{
			{"type": "WhitespaceSplit"}, {"type": "Metaspace", "replacement": "▁", "add_prefix_space": true},
		}},
		"post_processor": object{"type": "RobertaProcessing", "sep": []any{"</s>", 2}, "cls": []any{"<s>", 0}},
		"model":          object{"type": "Unigram", "unk_id": 3, "vocab": vocab},
	}
}

func TestFromJSONUnigram(t *testing.T) {
	config := encodeJSON(t, object{"unk_token": "<unk>", "pad_token": "<pad>", "mask_token": "<mask>", "cls_token": "<s>", "sep_token": "</s>"})
	tok, err := tokenizer.FromJSON(encodeJSON(t, jsonUnigram(nil)), config)
	if err != nil {
		t.Fatal(err)
	}
	same := load(t, smallUnigram())
	for _, s := range []string{"hello  world", " hell ", "가字字", "<s>hello"} {
		if got, want := tokenizer.Raw(tok, s), tokenizer.Raw(same, s); !slices.Equal(got, want) {
			t.Errorf("%q: %v from JSON, %v from GGUF", s, got, want)
		}
	}
	if got := tok.Special(); got.BOS != 0 || got.EOS != 2 || got.PAD != 1 || got.MASK != 15 || got.SEP != 2 {
		t.Errorf("roles %+v", got)
	}
}

func TestWordPieceSourcesAgree(t *testing.T) {
	data, config, vocab := miniLM(t)
	fromJSON, err := tokenizer.FromJSON(data, config)
	if err != nil {
		t.Fatal(err)
	}
	fromText, err := tokenizer.FromVocabTxt(vocab, config)
	if err != nil {
		t.Fatal(err)
	}
	fromGGUF := load(t, bertMeta(string(vocab)))
	all, _ := goldenStrings(t)
	for _, s := range all {
		want := tokenizer.Raw(fromJSON, s)
		if got := tokenizer.Raw(fromText, s); !slices.Equal(got, want) {
			t.Fatalf("%q: %v from vocab.txt, %v from tokenizer.json", s, got, want)
		}
		if got := tokenizer.Raw(fromGGUF, s); !slices.Equal(got, want) {
			t.Fatalf("%q: %v from GGUF, %v from tokenizer.json", s, got, want)
		}
	}
}

// bertMeta spells a vocab.txt as GGUF does.
func bertMeta(vocab string) meta {
	var tokens []string
	var types []int64
	for line := range strings.Lines(vocab) {
		s := strings.TrimSpace(line)
		kind := int64(1)
		if rest, ok := strings.CutPrefix(s, "##"); ok {
			s = rest
		} else if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") {
			kind = 3
		} else {
			s = "▁" + s
		}
		tokens, types = append(tokens, s), append(types, kind)
	}
	return meta{"tokenizer.ggml.model": "bert", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types}
}

func TestFromJSONRefuses(t *testing.T) {
	bpe := jsonBPE()
	model := bpe["model"].(object)
	spm := jsonSentencePiece(nil)
	unigram := jsonUnigram(nil)
	byteLevel := object{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}
	tests := []struct {
		name string
		file object
		err  error
		says string
	}{
		{"unknown model", with(bpe, "model", object{"type": "WordLevel"}), tokenizer.ErrUnsupported, "WordLevel"},
		{"no model", object{}, tokenizer.ErrUnsupported, "model type"},
		{"unknown pattern", with(bpe, "pre_tokenizer", splitOn(`\w+`)), tokenizer.ErrUnsupported, `\\w+`},
		{"no pre-tokenizer", with(bpe, "pre_tokenizer", nil), tokenizer.ErrUnsupported, "0 parts"},
		{"prefix space", with(bpe, "pre_tokenizer", with(byteLevel, "add_prefix_space", true)), tokenizer.ErrUnsupported, "add_prefix_space"},
		{"digits in groups", with(bpe, "pre_tokenizer", object{"type": "Sequence", "pretokenizers": []object{{"type": "Digits"}, byteLevel}}), tokenizer.ErrUnsupported, "Digits"},
		{"other normaliser", with(bpe, "normalizer", object{"type": "Lowercase"}), tokenizer.ErrUnsupported, "Lowercase"},
		{"word suffix", with(bpe, "model", with(model, "end_of_word_suffix", "</w>")), tokenizer.ErrUnsupported, "suffix"},
		{"vocab is a list", with(bpe, "model", with(model, "vocab", []int{1})), tokenizer.ErrMalformed, "vocab"},
		{"merge of three", with(bpe, "model", with(model, "merges", [][]string{{"a", "b", "c"}})), tokenizer.ErrMalformed, "3 tokens"},
		{"huge id", with(bpe, "added_tokens", []object{{"id": 1 << 30, "content": "x"}}), tokenizer.ErrMalformed, "1073741824"},
		{"negative id", with(bpe, "added_tokens", []object{{"id": -1, "content": "x"}}), tokenizer.ErrMalformed, "-1"},
		{"unknown post-processor", with(bpe, "post_processor", object{"type": "Other"}), tokenizer.ErrUnsupported, "Other"},
		{"two tokens in front", with(spm, "post_processor", object{"type": "TemplateProcessing", "single": []object{{"SpecialToken": object{"id": "a"}}}}), tokenizer.ErrUnsupported, `"a"`},
		{"post-processor outside", with(spm, "post_processor", object{"type": "BertProcessing", "sep": []any{"x", 99}, "cls": []any{"y", 98}}), tokenizer.ErrMalformed, "98"},
		{"bytes, other normaliser", with(spm, "normalizer", object{"type": "NFKC"}), tokenizer.ErrUnsupported, "NFKC"},
		{"unigram, other normaliser", with(unigram, "normalizer", object{"type": "NFKC"}), tokenizer.ErrUnsupported, "NFKC"},
		{"unigram, other split", with(unigram, "pre_tokenizer", object{"type": "Whitespace"}), tokenizer.ErrUnsupported, "Whitespace"},
		{"unigram, bad base64", with(unigram, "normalizer", object{"type": "Precompiled", "precompiled_charsmap": "*"}), tokenizer.ErrMalformed, "charsmap"},
		{"WordPiece alone", object{"model": object{"type": "WordPiece", "vocab": object{"[UNK]": 0}}}, tokenizer.ErrUnsupported, "BertNormalizer"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tokenizer.FromJSON(encodeJSON(t, tt.file), nil)
			if !errors.Is(err, tt.err) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %v naming %q", err, tt.err, tt.says)
			}
		})
	}
	if _, err := tokenizer.FromJSON([]byte("{"), nil); !errors.Is(err, tokenizer.ErrMalformed) {
		t.Errorf("cut JSON: %v", err)
	}
	if _, err := tokenizer.FromJSON(encodeJSON(t, bpe), []byte("[")); !errors.Is(err, tokenizer.ErrMalformed) {
		t.Errorf("cut configuration: %v", err)
	}
	if _, err := tokenizer.FromVocabTxt([]byte("a\nb\n"), nil); !errors.Is(err, tokenizer.ErrMalformed) {
		t.Errorf("vocab.txt without an unknown token: %v", err)
	}
}

func FuzzFromJSON(f *testing.F) {
	nasty, err := os.ReadFile("testdata/nasty.txt")
	if err != nil {
		f.Fatal(err)
	}
	text := string(nasty)
	f.Add(encodeJSON(f, jsonBPE()), []byte(`{"bos_token":"<s>","add_bos_token":true}`))
	f.Add(encodeJSON(f, jsonSentencePiece(nil)), []byte(`{}`))
	f.Add(encodeJSON(f, jsonUnigram(nil)), []byte(`{"eos_token":{"content":"</s>"}}`))
	f.Add([]byte(`{"added_tokens":[{"id":1,"content":"[UNK]","special":true}],"normalizer":{"type":"BertNormalizer","clean_text":true},`+
		`"pre_tokenizer":{"type":"BertPreTokenizer"},"model":{"type":"WordPiece","unk_token":"[UNK]","vocab":{"a":0,"[UNK]":1,"##b":2}}}`), []byte(``))
	f.Fuzz(func(t *testing.T, data, config []byte) {
		tok, err := tokenizer.FromJSON(data, config)
		if err != nil {
			if !errors.Is(err, tokenizer.ErrMalformed) && !errors.Is(err, tokenizer.ErrUnsupported) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		for _, id := range tok.EncodeScaffold(tokenizer.Raw(tok, text), text) {
			if id < 0 || int(id) >= tok.Size() {
				t.Fatalf("id %d in a vocabulary of %d", id, tok.Size())
			}
			tok.Piece(id)
		}
	})
}
