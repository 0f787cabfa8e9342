package tokenizer_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"ragd/inference/tokenizer"
	"ragd/inference/tokenizer/internal/samples"
)

func load(tb testing.TB, m meta) tokenizer.Tokenizer {
	tb.Helper()
	tok, err := tokenizer.FromGGUF(m)
	if err != nil {
		tb.Fatal(err)
	}
	return tok
}

// small is one vocabulary of each kind.
func small(tb testing.TB) map[string]tokenizer.Tokenizer {
	return map[string]tokenizer.Tokenizer{
		"bpe":           load(tb, smallBPE("smollm")),
		"sentencepiece": load(tb, smallSentencePiece(tb)),
		"unigram":       load(tb, smallUnigram()),
		"wordpiece":     load(tb, smallBERT()),
	}
}

// spell is the spellings of ids, for readable failures.
func spell(tok tokenizer.Tokenizer, ids []int32) string {
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = string(tok.Piece(id))
		if tok.Control(id) {
			parts[i] = "CONTROL"
		}
	}
	return strings.Join(parts, "|")
}

func decode(tok tokenizer.Tokenizer, ids []int32) string {
	var b strings.Builder
	for _, id := range ids {
		b.Write(tok.Piece(id))
	}
	return b.String()
}

func TestEncode(t *testing.T) {
	toks := small(t)
	tests := []struct{ kind, text, want string }{
		{"bpe", "hello world", "hello| wor|l|d"},
		{"bpe", "hell", "hell"},
		{"bpe", "a1 23", "a|1| |2|3"},
		{"bpe", "x<think>hello", "x|<think>|hello"},
		{"bpe", "", ""},
		{"unigram", "hello  world", " hello| wor|ld"},
		{"unigram", "  hello ", " hello"},
		{"unigram", "hell", " he|l|l"},
		{"unigram", "   ", ""},
		{"unigram", "가", " |가"},
		{"wordpiece", "Unable, ABLE", " un|able| ,| able"},
		{"wordpiece", "CAFÉ\u200b cafe\u0301", " cafe| cafe"},
		{"wordpiece", "un中un", " un| 中| un"},
	}
	for _, tt := range tests {
		tok := toks[tt.kind]
		if got := spell(tok, tok.Encode(nil, tt.text)); got != tt.want {
			t.Errorf("%s: %q gives %s, want %s", tt.kind, tt.text, got, tt.want)
		}
	}
}

// Unknown characters next to each other are one unknown token, also over the end
// of a word where no space token comes between.
func TestUnigramUnknown(t *testing.T) {
	tok := load(t, smallUnigram())
	unk, space := tok.Special().UNK, int32(4)
	for text, want := range map[string][]int32{
		"字":                        {space, unk},
		"字字字":                      {space, unk},
		"字 字":                      {space, unk, space, unk},
		"\xff\xfe":                 {space, unk},
		strings.Repeat("字", 1<<16): {space, unk}, // past the bound of one search
	} {
		if got := tok.Encode(nil, text); !slices.Equal(got, want) {
			t.Errorf("%d bytes beginning with %.12q: %v, want %v", len(text), text, got, want)
		}
	}
}

// A user-defined token costs nothing, so it wins against any other cut.
func TestUnigramUserDefined(t *testing.T) {
	m := smallUnigram()
	types := slices.Clone(m["tokenizer.ggml.token_type"].([]int64))
	types[7] = 4 // "▁hello", its score by far the lowest
	scores := slices.Clone(m["tokenizer.ggml.scores"].([]float32))
	scores[7] = -1000
	tok := load(t, m.with(meta{"tokenizer.ggml.token_type": types, "tokenizer.ggml.scores": scores}))
	if got := tok.Encode(nil, "hello"); !slices.Equal(got, []int32{7}) {
		t.Errorf("got %v, want the user-defined token", got)
	}
}

// A token may hold a space between letters: then the words around it belong
// together.
func TestSentencePieceTokenOverASpace(t *testing.T) {
	tok := load(t, meta{
		"tokenizer.ggml.model":            "llama",
		"tokenizer.ggml.tokens":           []string{"<unk>", "<s>", "</s>", "a", "▁", "b", "▁b", "a▁b", "c", "▁c"},
		"tokenizer.ggml.scores":           []float32{0, 0, 0, -9, -9, -9, -2, -1, -9, -3},
		"tokenizer.ggml.token_type":       []int64{2, 3, 3, 1, 1, 1, 1, 1, 1, 1},
		"tokenizer.ggml.add_space_prefix": false,
	})
	if got := tok.Encode(nil, "c a b c"); !slices.Equal(got, []int32{8, 4, 7, 9}) {
		t.Errorf("got %v", got)
	}
}

// Llama 3 takes a piece that is a token as it is, whatever the merges say.
func TestLlama3IgnoresMerges(t *testing.T) {
	for pre, want := range map[string]int{"llama-bpe": 1, "qwen2": 3} {
		m := smallBPE(pre)
		tokens := append(slices.Clone(m["tokenizer.ggml.tokens"].([]string)), "held")
		types := append(slices.Clone(m["tokenizer.ggml.token_type"].([]int64)), 1)
		tok := load(t, m.with(meta{"tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types}))
		if got := tok.Encode(nil, "held"); len(got) != want {
			t.Errorf("%s: %v", pre, got)
		}
		if got := tok.Special().AddBOS; got != (pre == "llama-bpe") {
			t.Errorf("%s: AddBOS %v where the file is silent", pre, got)
		}
	}
}

// Text that spells control tokens, with and without neighbours to merge with.
var forged = []string{
	"<s>", "a<s>b", "<|im_start|>system", "x <|im_end|> y", "<|im_end|>x", "</s>", "<unk>", "<pad>", "<mask>", "[CLS]", "[SEP] [MASK]", "[PAD]",
	"<0x0A>", "<bos>", "<|im_end|", "<s><s>",
}

func TestEncodeNeverYieldsControlTokens(t *testing.T) {
	for kind, tok := range small(t) {
		for _, text := range append(slices.Clone(forged), samples.Strings()...) {
			for _, id := range tok.Encode(nil, text) {
				if tok.Control(id) {
					t.Fatalf("%s: %q gives control token %d", kind, text, id)
				}
			}
		}
	}
}

func TestEncodeScaffold(t *testing.T) {
	tok := load(t, smallBPE("smollm"))
	id := func(s string) int32 {
		id, ok := tok.ID(s)
		if !ok {
			t.Fatalf("no token %q", s)
		}
		return id
	}
	got := tok.EncodeScaffold(nil, "<|im_start|>hello<|im_end|>x<|im_end|>")
	want := []int32{id("<|im_start|>"), id("hello"), id("<|im_end|>x"), id("<|im_end|>")}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v: the longest spelling counts", got, want)
	}
	if n := len(tok.Piece(want[0])); n != 0 {
		t.Errorf("a control token stands for %d bytes of text", n)
	}
}

// A space is put before the first word only.
func TestSpacePrefix(t *testing.T) {
	for _, kind := range []string{"sentencepiece", "unigram"} {
		tok := small(t)[kind]
		word, cont := tok.Encode(nil, "he"), tok.Encode(tok.Encode(nil, "he"), "he")
		if got := string(tok.Piece(word[0])); !strings.HasPrefix(got, " ") {
			t.Errorf("%s: the first piece is %q", kind, got)
		}
		if got := decode(tok, cont); got != " hehe" {
			t.Errorf("%s: text put behind text gives %q", kind, got)
		}
		bos := tok.Special().BOS
		if got := tok.Encode([]int32{bos}, "he"); !slices.Equal(got[1:], word) {
			t.Errorf("%s: behind BOS %v, alone %v", kind, got[1:], word)
		}
	}
	tok := small(t)["sentencepiece"]
	if got := decode(tok, tok.Encode(nil, "<think>he")); got != "<think> he" {
		t.Errorf("behind a user-defined token: %q", got)
	}
	without := load(t, smallSentencePiece(t).with(meta{"tokenizer.ggml.add_space_prefix": false}))
	if got := decode(without, without.Encode(nil, "he")); got != "he" {
		t.Errorf("add_space_prefix false gives %q", got)
	}
}

func TestRawAndChatCountBOS(t *testing.T) {
	tests := []struct {
		name     string
		add      bool
		scaffold string // what a template renders around the text
		text     string
		raw      int
		chat     int
	}{
		{"template writes BOS, vocabulary adds it", true, "<s>user:", "hi", 1, 1},
		{"only the vocabulary", true, "user:", "hi", 1, 1},
		{"only the template", false, "<s>user:", "hi", 0, 1},
		{"nobody", false, "user:", "hi", 0, 0},
		{"a template that writes two", false, "<s><s>user:", "hi", 0, 2},
		{"the text spells it", true, "<s>user:", "<s> is how it is spelt <s>", 1, 1},
		{"the text spells it and nobody adds it", false, "user:", "<s>", 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tok := load(t, smallBPE("smollm").with(meta{"tokenizer.ggml.add_bos_token": tt.add, "tokenizer.ggml.add_eos_token": tt.add}))
			count := func(ids []int32, id int32) (n int) {
				for _, v := range ids {
					if v == id {
						n++
					}
				}
				return n
			}
			raw := tokenizer.Raw(tok, tt.text)
			if got := count(raw, tok.Special().BOS); got != tt.raw {
				t.Errorf("raw: %d BOS, want %d", got, tt.raw)
			}
			if got := count(raw, tok.Special().EOS); got != tt.raw {
				t.Errorf("raw: %d EOS, want %d", got, tt.raw)
			}
			chat := tokenizer.Chat(tok, tok.Encode(tok.EncodeScaffold(nil, tt.scaffold), tt.text))
			if got := count(chat, tok.Special().BOS); got != tt.chat {
				t.Errorf("chat: %d BOS, want %d", got, tt.chat)
			}
		})
	}
}

func TestEndOfGeneration(t *testing.T) {
	tok := load(t, smallBPE("smollm"))
	end, _ := tok.ID("<|im_end|>")
	if got := tok.Special().EndOfGeneration; !slices.Equal(got, []int32{end}) {
		t.Errorf("got %v, want only %d", got, end)
	}
	m := smallBPE("smollm")
	tokens, types := m["tokenizer.ggml.tokens"].([]string), m["tokenizer.ggml.token_type"].([]int64)
	more := []string{"<|endoftext|>", "<end_of_turn>", "<turn_end>", "</s>"}
	m["tokenizer.ggml.tokens"] = append(tokens, more...)
	m["tokenizer.ggml.token_type"] = append(types, 3, 3, 3, 4) // </s> is ordinary here
	m["tokenizer.ggml.eot_token_id"] = uint64(len(tokens) + 2)
	first := int32(len(tokens))
	if got, want := load(t, m).Special().EndOfGeneration, []int32{end, first, first + 1, first + 2}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestRoles(t *testing.T) {
	if s := load(t, smallUnigram()).Special(); s.CLS != 0 || s.SEP != 2 || s.PAD != 1 || s.MASK != 15 || !s.AddBOS || !s.AddEOS {
		t.Errorf("unigram: %+v", s)
	}
	tok := load(t, smallBERT())
	if got := tokenizer.Raw(tok, "able"); !slices.Equal(got, []int32{2, 7, 3}) {
		t.Errorf("bert: raw sequence %v", got)
	}
	if s := load(t, smallBPE("gpt-2").with(meta{"tokenizer.ggml.bos_token_id": nil})).Special(); s.BOS != -1 || s.AddBOS {
		t.Errorf("without BOS: %+v", s)
	}
}

func TestFromGGUFRefuses(t *testing.T) {
	bpe := smallBPE("smollm")
	tests := []struct {
		name string
		meta meta
		err  error
		says string
	}{
		{"nothing", meta{}, tokenizer.ErrMalformed, "tokenizer.ggml.model"},
		{"unknown model", bpe.with(meta{"tokenizer.ggml.model": "rwkv"}), tokenizer.ErrUnsupported, "rwkv"},
		{"unknown pre-tokenizer", smallBPE("tekken"), tokenizer.ErrUnsupported, "tekken"},
		{"no pre-tokenizer", bpe.with(meta{"tokenizer.ggml.pre": nil}), tokenizer.ErrMalformed, "tokenizer.ggml.pre"},
		{"no tokens", bpe.with(meta{"tokenizer.ggml.tokens": nil}), tokenizer.ErrMalformed, "tokens"},
		{"empty tokens", bpe.with(meta{"tokenizer.ggml.tokens": []string{}, "tokenizer.ggml.token_type": nil}), tokenizer.ErrMalformed, "0 tokens"},
		{"no merges", bpe.with(meta{"tokenizer.ggml.merges": nil}), tokenizer.ErrMalformed, "merges"},
		{"a merge of one", bpe.with(meta{"tokenizer.ggml.merges": []string{"ab"}}), tokenizer.ErrMalformed, `"ab"`},
		{"a merge of nothing", bpe.with(meta{"tokenizer.ggml.merges": []string{""}}), tokenizer.ErrMalformed, `""`},
		{"a merge of strangers", bpe.with(meta{"tokenizer.ggml.merges": []string{"qq rr"}}), tokenizer.ErrMalformed, "qq"},
		{"too few types", bpe.with(meta{"tokenizer.ggml.token_type": []int64{1}}), tokenizer.ErrMalformed, "token_type"},
		{"EOS outside", bpe.with(meta{"tokenizer.ggml.eos_token_id": uint64(1 << 40)}), tokenizer.ErrMalformed, "eos_token_id"},
		{"end of turn outside", bpe.with(meta{"tokenizer.ggml.eot_token_id": uint64(99999)}), tokenizer.ErrMalformed, "eot_token_id"},
		{"BOS to add but none", bpe.with(meta{"tokenizer.ggml.bos_token_id": nil, "tokenizer.ggml.add_bos_token": true}), tokenizer.ErrMalformed, "BOS"},
		{"no scores", smallUnigram().with(meta{"tokenizer.ggml.scores": nil}), tokenizer.ErrMalformed, "scores"},
		{"too few scores", smallUnigram().with(meta{"tokenizer.ggml.scores": []float32{1}}), tokenizer.ErrMalformed, "scores"},
		{"bad charsmap", smallUnigram().with(meta{"tokenizer.ggml.precompiled_charsmap": []byte{9}}), tokenizer.ErrMalformed, "charsmap"},
		{"too few scores, llama", smallSentencePiece(t).with(meta{"tokenizer.ggml.scores": []float32{1}}), tokenizer.ErrMalformed, "scores"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := tokenizer.FromGGUF(tt.meta)
			if !errors.Is(err, tt.err) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("error %v, want %v naming %q", err, tt.err, tt.says)
			}
		})
	}
}

func TestIDsOutsideTheVocabulary(t *testing.T) {
	for kind, tok := range small(t) {
		for _, id := range []int32{-1, int32(tok.Size()), 1 << 30} {
			if tok.Control(id) || len(tok.Piece(id)) != 0 {
				t.Errorf("%s: id %d has a meaning", kind, id)
			}
		}
	}
}

func TestEncodeIsSafeForConcurrentUse(t *testing.T) {
	for kind, tok := range small(t) {
		texts := samples.Strings()[:200]
		want := make([][]int32, len(texts))
		for i, s := range texts {
			want[i] = tok.Encode(nil, s)
		}
		var group sync.WaitGroup
		for range 4 {
			group.Go(func() {
				for i, s := range texts {
					if got := tok.Encode(nil, s); !slices.Equal(got, want[i]) {
						t.Errorf("%s: %q gives %v beside others, %v alone", kind, s, got, want[i])
					}
				}
			})
		}
		group.Wait()
	}
}

// An unbroken run of megabytes: every byte is still there, in pieces that no
// character is divided by.
func TestUnbrokenRun(t *testing.T) {
	for _, unit := range []string{"a", "hello", "가", "1", " ", "\n", "😀", "!"} {
		text := strings.Repeat(unit, 1<<20/len(unit))
		for _, kind := range []string{"bpe", "sentencepiece"} {
			tok := small(t)[kind]
			got := decode(tok, tok.Encode(nil, text))
			if kind == "sentencepiece" {
				got = strings.TrimPrefix(got, " ")
			}
			if got != text {
				t.Errorf("%s: %d bytes of %q come back as %d bytes", kind, len(text), unit, len(got))
			}
		}
	}
	tok := small(t)["unigram"]
	if got := tok.Encode(nil, strings.Repeat("가", 1<<18)); len(got) != 1+1<<18 {
		t.Errorf("unigram: %d tokens for %d characters", len(got), 1<<18)
	}
}

func FuzzEncode(f *testing.F) {
	for _, s := range forged {
		f.Add(s)
	}
	f.Add("hello  wor\xffld\r\n\u00a0가\u1100\u1161 12 '\u017f")
	bpe := map[string]tokenizer.Tokenizer{}
	for _, pre := range []string{"gpt-2", "smollm", "llama-bpe", "qwen2"} {
		bpe[pre] = load(f, smallBPE(pre))
	}
	others := small(f)
	f.Fuzz(func(t *testing.T, text string) {
		for pre, tok := range bpe {
			if got := decode(tok, tok.Encode(nil, text)); got != text {
				t.Errorf("%s: %q comes back as %q", pre, text, got)
			}
		}
		for kind, tok := range others {
			for _, ids := range [][]int32{tok.Encode(nil, text), tok.EncodeScaffold(nil, text)} {
				for _, id := range ids {
					if id < 0 || int(id) >= tok.Size() {
						t.Fatalf("%s: %q gives id %d", kind, text, id)
					}
				}
			}
			for _, id := range tok.Encode(nil, text) {
				if tok.Control(id) {
					t.Fatalf("%s: %q gives control token %d", kind, text, id)
				}
			}
		}
		spm := others["sentencepiece"]
		want := strings.ReplaceAll(text, "▁", " ") // its spelling of a space
		if got := strings.TrimPrefix(decode(spm, spm.Encode(nil, text)), " "); utf8.ValidString(text) && got != want && !strings.HasPrefix(want, " ") {
			t.Errorf("sentencepiece: %q comes back as %q", text, got)
		}
	})
}
