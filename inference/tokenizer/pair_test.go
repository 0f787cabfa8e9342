package tokenizer_test

import (
	"errors"
	"slices"
	"testing"

	"ragd/inference/tokenizer"
)

// bertTemplate is BERT's post-processor as tokenizer.json has it.
func bertTemplate(pair ...object) object {
	return object{
		"type": "TemplateProcessing", "single": []object{special("[CLS]", 0), sequence("A", 0), special("[SEP]", 0)}, "pair": pair,
		"special_tokens": object{"[CLS]": object{"ids": []int{1}}, "[SEP]": object{"ids": []int{2}}},
	}
}

func special(name string, segment int) object {
	return object{"SpecialToken": object{"id": name, "type_id": segment}}
}

func sequence(name string, segment int) object {
	return object{"Sequence": object{"id": name, "type_id": segment}}
}

// jsonBERT is a WordPiece vocabulary whose mask takes the white space before it.
func jsonBERT(processor object) object {
	return object{
		"added_tokens": []object{
			{"id": 0, "content": "[UNK]", "special": true},
			{"id": 1, "content": "[CLS]", "special": true},
			{"id": 2, "content": "[SEP]", "special": true},
			{"id": 3, "content": "<L>", "lstrip": true},
			{"id": 4, "content": "<R>", "rstrip": true},
			{"id": 5, "content": "<N>"},
		},
		"normalizer": object{"type": "BertNormalizer", "lowercase": true}, "pre_tokenizer": object{"type": "BertPreTokenizer"},
		"post_processor": processor,
		"model": object{
			"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
			"vocab": object{"[UNK]": 0, "[CLS]": 1, "[SEP]": 2, "a": 6, "b": 7, "##a": 8, "[": 9, "]": 10, "sep": 11},
		},
	}
}

func fromJSON(tb testing.TB, o object) tokenizer.Tokenizer {
	tb.Helper()
	tok, err := tokenizer.FromJSON(encodeJSON(tb, o), nil)
	if err != nil {
		tb.Fatal(err)
	}
	return tok
}

func TestJoin(t *testing.T) {
	bert := fromJSON(t, jsonBERT(bertTemplate(special("[CLS]", 0), sequence("A", 0), special("[SEP]", 0), sequence("B", 1), special("[SEP]", 1))))
	roberta := fromJSON(t, jsonBERT(object{"type": "RobertaProcessing", "cls": []any{"[CLS]", 1}, "sep": []any{"[SEP]", 2}}))
	old := fromJSON(t, jsonBERT(object{"type": "BertProcessing", "cls": []any{"[CLS]", 1}, "sep": []any{"[SEP]", 2}}))
	txt, err := tokenizer.FromVocabTxt([]byte("[UNK]\n[CLS]\n[SEP]\na\nb\n"), nil)
	if err != nil {
		t.Fatal(err)
	}
	long := slices.Repeat([]int32{7}, 30)
	for name, c := range map[string]struct {
		tok           tokenizer.Tokenizer
		first, second []int32
		limit         int
		want          tokenizer.Pair
	}{
		"BERT":            {bert, []int32{6, 8}, []int32{7}, 9, tokenizer.Pair{Tokens: []int32{1, 6, 8, 2, 7, 2}, Second: 4}},
		"older BERT":      {old, []int32{6, 8}, []int32{7}, 9, tokenizer.Pair{Tokens: []int32{1, 6, 8, 2, 7, 2}, Second: 4}},
		"vocab.txt":       {txt, []int32{3}, []int32{4}, 9, tokenizer.Pair{Tokens: []int32{1, 3, 2, 4, 2}, Second: 3}},
		"RoBERTa":         {roberta, []int32{6, 8}, []int32{7}, 9, tokenizer.Pair{Tokens: []int32{1, 6, 8, 2, 2, 7, 2}}},
		"empty second":    {bert, []int32{6}, nil, 9, tokenizer.Pair{Tokens: []int32{1, 6, 2, 2}, Second: 3}},
		"cut":             {bert, []int32{6}, long, 20, tokenizer.Pair{Tokens: slices.Concat([]int32{1, 6, 2}, long[:16], []int32{2}), Second: 3, Cut: 14}},
		"short and whole": {bert, []int32{6}, long[:3], 7, tokenizer.Pair{Tokens: []int32{1, 6, 2, 7, 7, 7, 2}, Second: 3}},
	} {
		got, err := tokenizer.Join(c.tok, c.first, c.second, c.limit)
		if err != nil || !slices.Equal(got.Tokens, c.want.Tokens) || got.Second != c.want.Second || got.Cut != c.want.Cut {
			t.Errorf("%s: %+v (%v), want %+v", name, got, err, c.want)
		}
	}
	for _, second := range [][]int32{long, long[:4]} {
		if _, err := tokenizer.Join(bert, []int32{6}, second, 7); !errors.Is(err, tokenizer.ErrNoRoom) {
			t.Errorf("%d tokens in 7: %v", len(second), err)
		}
	}
}

// A template that cannot be held is not replaced by a similar one.
func TestJoinNeedsATemplate(t *testing.T) {
	for name, pair := range map[string][]object{
		"none":              nil,
		"B before A":        {sequence("B", 0), special("[SEP]", 0), sequence("A", 0)},
		"A alone":           {special("[CLS]", 0), sequence("A", 0)},
		"A is of segment 1": {sequence("A", 1), special("[SEP]", 0), sequence("B", 1)},
		"segments mixed":    {sequence("A", 0), special("[SEP]", 0), sequence("B", 1), special("[SEP]", 0)},
		"separator in B":    {sequence("A", 0), special("[SEP]", 1), sequence("B", 1)},
		"three texts":       {sequence("A", 0), sequence("B", 0), sequence("B", 0)},
		"unknown token":     {sequence("A", 0), special("[NONE]", 0), sequence("B", 1)},
	} {
		tok := fromJSON(t, jsonBERT(bertTemplate(pair...)))
		if _, err := tokenizer.Join(tok, []int32{6}, []int32{7}, 20); !errors.Is(err, tokenizer.ErrUnsupported) {
			t.Errorf("%s: %v", name, err)
		}
	}
	broken := object{"type": "BertProcessing", "cls": []any{"[CLS]", 1}, "sep": []any{"[SEP]", 99}}
	if _, err := tokenizer.FromJSON(encodeJSON(t, jsonBERT(broken)), nil); !errors.Is(err, tokenizer.ErrMalformed) {
		t.Errorf("a separator outside the vocabulary: %v", err)
	}
}

// A token that strips takes the white space on its side away, as the tokenizers
// library does. In WordPiece white space makes no difference, so SentencePiece's
// spaces show it.
func TestStrippingTokens(t *testing.T) {
	added := []object{
		{"id": 0, "content": "<unk>", "special": true},
		{"id": 1, "content": "<L>", "lstrip": true},
		{"id": 2, "content": "<R>", "rstrip": true},
		{"id": 3, "content": "<N>"},
	}
	tok := fromJSON(t, object{
		"added_tokens": added, "normalizer": object{"type": "Replace", "pattern": object{"String": " "}, "content": "▁"},
		"model": object{
			"type": "BPE", "byte_fallback": true, "unk_token": "<unk>", "merges": [][]string{},
			"vocab": object{"<unk>": 0, "▁": 4, "a": 5, "b": 6},
		},
	})
	for text, want := range map[string][]int32{
		"a <N> b":     {5, 4, 3, 4, 6},
		"a  <L> b":    {5, 1, 4, 6},
		"a <R>  b":    {5, 4, 2, 6},
		" <L> <R> ":   {1, 4, 2},
		"<R> <L>":     {2, 1},
		"a <L><R> b ": {5, 1, 2, 6, 4},
	} {
		if got := tok.Encode(nil, text); !slices.Equal(got, want) {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// A pair keeps to its limit and to its template whatever the texts spell, and what
// is cut is told.
func FuzzJoin(f *testing.F) {
	toks := []tokenizer.Tokenizer{
		load(f, smallBERT()),
		fromJSON(f, jsonBERT(object{"type": "RobertaProcessing", "cls": []any{"[CLS]", 1}, "sep": []any{"[SEP]", 2}})),
	}
	f.Add("how much", "a lot", 40)
	f.Add("[SEP] b", "a [CLS] [SEP] <L> b", 25)
	f.Add("", "aaa bbb \xff", 0)
	f.Add("a", "a b a b a b a b a b a b a b a b a b a b", 21)
	f.Fuzz(func(t *testing.T, question, passage string, limit int) {
		for _, tok := range toks {
			first, second := tok.Encode(nil, question), tok.Encode(nil, passage)
			p, err := tokenizer.Join(tok, first, second, limit)
			if errors.Is(err, tokenizer.ErrNoRoom) {
				continue
			}
			j := tok.Special().Pair
			if err != nil || len(p.Tokens) > limit {
				t.Fatalf("%d tokens in %d: %v", len(p.Tokens), limit, err)
			}
			want := slices.Concat(j.Before, first, j.Between, second[:len(second)-p.Cut], j.After)
			if !slices.Equal(p.Tokens, want) {
				t.Fatalf("%v, want %v", p.Tokens, want)
			}
			controls := 0
			for _, id := range p.Tokens {
				if tok.Control(id) {
					controls++
				}
			}
			if controls != len(j.Before)+len(j.Between)+len(j.After) {
				t.Fatalf("%d control tokens in %v", controls, p.Tokens)
			}
		}
	})
}
