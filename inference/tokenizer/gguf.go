package tokenizer

import (
	"fmt"
	"strings"
)

// Metadata is the key–value part of a GGUF file. A getter reports false for a
// key that is missing or of another type.
type Metadata interface {
	String(key string) (string, bool)
	Uint(key string) (uint64, bool)
	Bool(key string) (bool, bool)
	Strings(key string) ([]string, bool)
	Floats(key string) ([]float32, bool)
	Ints(key string) ([]int64, bool)
	Bytes(key string) ([]byte, bool)
}

// ggml is the prefix of the tokenizer's keys (GGUF specification, "Tokenizer").
const ggml = "tokenizer.ggml."

// FromGGUF makes the tokenizer that the metadata of a GGUF file describes:
// tokenizer.ggml.model gpt2 (byte-level BPE), llama (SentencePiece BPE), t5
// (SentencePiece unigram, also XLM-RoBERTa) or bert (WordPiece). Errors are
// ErrUnsupported or ErrMalformed, with the key or name at fault.
func FromGGUF(meta Metadata) (Tokenizer, error) {
	model, ok := meta.String(ggml + "model")
	if !ok {
		return nil, fmt.Errorf("%w: no %smodel", ErrMalformed, ggml)
	}
	g := ggufVocabulary{meta: meta}
	if err := g.readTokens(); err != nil {
		return nil, err
	}
	switch model {
	case "gpt2":
		return g.bpe()
	case "llama":
		return g.sentencePiece()
	case "t5":
		return g.unigram()
	case "bert":
		return g.wordPiece()
	}
	return nil, fmt.Errorf("%w: %smodel %q", ErrUnsupported, ggml, model)
}

// ggufVocabulary is the part of the metadata that all models share.
type ggufVocabulary struct {
	meta   Metadata
	tokens []string
	kinds  []kind
}

func (g *ggufVocabulary) readTokens() error {
	tokens, ok := g.meta.Strings(ggml + "tokens")
	if !ok {
		return fmt.Errorf("%w: no %stokens", ErrMalformed, ggml)
	}
	g.tokens = tokens
	g.kinds = make([]kind, len(tokens))
	types, ok := g.meta.Ints(ggml + "token_type")
	if ok && len(types) != len(tokens) {
		return fmt.Errorf("%w: %d entries in %stoken_type for %d tokens", ErrMalformed, len(types), ggml, len(tokens))
	}
	for i := range g.kinds {
		g.kinds[i] = kindNormal
		if ok && types[i] >= int64(kindNormal) && types[i] <= int64(kindByte) {
			g.kinds[i] = kind(types[i])
		}
	}
	return nil
}

// id is the value of a key that holds a token id, or otherwise if it is absent.
func (g *ggufVocabulary) id(key string, otherwise int32) (int32, error) {
	v, ok := g.meta.Uint(ggml + key)
	if !ok {
		if int(otherwise) >= len(g.tokens) {
			return -1, nil
		}
		return otherwise, nil
	}
	if v >= uint64(len(g.tokens)) {
		return -1, fmt.Errorf("%w: %s%s is %d, the vocabulary has %d tokens", ErrMalformed, ggml, key, v, len(g.tokens))
	}
	return int32(v), nil
}

// special reads the roles; s holds what applies where a key is absent.
func (g *ggufVocabulary) special(s Special) (Special, error) {
	keys := []struct {
		name string
		id   *int32
	}{
		{"bos_token_id", &s.BOS},
		{"eos_token_id", &s.EOS},
		{"unknown_token_id", &s.UNK},
		{"padding_token_id", &s.PAD},
		{"cls_token_id", &s.CLS},
		{"seperator_token_id", &s.SEP}, // spelt so in the format
		{"mask_token_id", &s.MASK},
	}
	for _, k := range keys {
		var err error
		if *k.id, err = g.id(k.name, *k.id); err != nil {
			return s, err
		}
	}
	s.AddBOS = g.bool("add_bos_token", s.AddBOS)
	s.AddEOS = g.bool("add_eos_token", s.AddEOS)
	return s, nil
}

func (g *ggufVocabulary) bool(key string, otherwise bool) bool {
	if v, ok := g.meta.Bool(ggml + key); ok {
		return v
	}
	return otherwise
}

// vocabulary finishes the shared part for an algorithm.
func (g *ggufVocabulary) vocabulary(otherwise Special, piece func(id int) []byte) (vocabulary, error) {
	special, err := g.special(otherwise)
	if err != nil {
		return vocabulary{}, err
	}
	v, err := newVocabulary(g.tokens, g.kinds, special, piece)
	if err != nil {
		return vocabulary{}, err
	}
	turn, err := g.id("eot_token_id", -1)
	if err != nil {
		return vocabulary{}, err
	}
	message, err := g.id("eom_token_id", -1)
	if err != nil {
		return vocabulary{}, err
	}
	v.setEndOfGeneration(turn, message)
	return v, nil
}

// bpe reads a gpt2 vocabulary. A file without ids for BOS and EOS has none: the
// guess that old readers make (11) names an ordinary token in most files. The
// format cannot say that a model's text was normalised to NFC (Qwen2's
// tokenizer.json does), so text is taken as it is.
func (g *ggufVocabulary) bpe() (Tokenizer, error) {
	name, ok := g.meta.String(ggml + "pre")
	if !ok {
		return nil, fmt.Errorf("%w: a gpt2 vocabulary needs %spre, the name of its pre-tokenizer", ErrMalformed, ggml)
	}
	split, err := newSplitter(name)
	if err != nil {
		return nil, err
	}
	lines, ok := g.meta.Strings(ggml + "merges")
	if !ok {
		return nil, fmt.Errorf("%w: no %smerges", ErrMalformed, ggml)
	}
	cfg := bpeConfig{split: split, ignoreMerges: name == "llama-bpe", merges: make([][2]string, len(lines))}
	for i, line := range lines {
		if cfg.merges[i], err = splitMerge(line); err != nil {
			return nil, err
		}
	}
	otherwise := noSpecial()
	otherwise.AddBOS = name == "llama-bpe"
	speller := newByteSpeller()
	v, err := g.vocabulary(otherwise, func(id int) []byte {
		if g.kinds[id] == kindUserDefined {
			return []byte(g.tokens[id])
		}
		return speller.bytes(g.tokens[id])
	})
	if err != nil {
		return nil, err
	}
	return newBPE(v, cfg)
}

// unigram reads a t5 vocabulary.
func (g *ggufVocabulary) unigram() (Tokenizer, error) {
	scores, ok := g.meta.Floats(ggml + "scores")
	if !ok {
		return nil, fmt.Errorf("%w: no %sscores", ErrMalformed, ggml)
	}
	charsmap, _ := g.meta.Bytes(ggml + "precompiled_charsmap")
	cfg := unigramConfig{
		charsmap:        charsmap,
		addSpacePrefix:  g.bool("add_space_prefix", false),
		mergeWhitespace: g.bool("remove_extra_whitespaces", false),
	}
	otherwise := noSpecial()
	otherwise.EOS, otherwise.UNK, otherwise.PAD, otherwise.AddEOS = 1, 2, 0, true
	v, err := g.vocabulary(otherwise, g.spaced)
	if err != nil {
		return nil, err
	}
	if s := &v.special; s.AddBOS && s.AddEOS {
		s.Pair = robertaJoint(s.BOS, s.EOS, s.SEP)
	}
	return newUnigram(v, scores, cfg)
}

// spaced is the bytes of a SentencePiece token.
func (g *ggufVocabulary) spaced(id int) []byte { return spaced(g.tokens[id], g.kinds[id]) }

// sentencePiece reads a llama vocabulary.
func (g *ggufVocabulary) sentencePiece() (Tokenizer, error) {
	scores, ok := g.meta.Floats(ggml + "scores")
	if !ok || len(scores) != len(g.tokens) {
		return nil, fmt.Errorf("%w: %d entries in %sscores for %d tokens", ErrMalformed, len(scores), ggml, len(g.tokens))
	}
	otherwise := noSpecial()
	otherwise.BOS, otherwise.EOS, otherwise.UNK, otherwise.AddBOS = 1, 2, 0, true
	v, err := g.vocabulary(otherwise, g.spaced)
	if err != nil {
		return nil, err
	}
	t := newSentencePiece(v, g.bool("add_space_prefix", true))
	t.rankByScore(scores)
	return t, nil
}

// wordPiece reads a bert vocabulary. The format spells the start of a word with
// "▁" and leaves the continuation mark away.
func (g *ggufVocabulary) wordPiece() (Tokenizer, error) {
	otherwise := noSpecial()
	otherwise.BOS, otherwise.UNK, otherwise.SEP, otherwise.PAD, otherwise.MASK = 101, 100, 102, 0, 103
	special, err := g.special(otherwise)
	if err != nil {
		return nil, err
	}
	g.respellWordPieces(special)
	if special.CLS < 0 {
		special.CLS = special.BOS
	}
	if special.EOS < 0 {
		special.EOS = special.SEP
	}
	special.BOS, special.AddBOS, special.AddEOS = special.CLS, special.CLS >= 0, special.EOS >= 0
	special.Pair = bertJoint(special.CLS, special.EOS)
	v, err := newVocabulary(g.tokens, g.kinds, special, func(id int) []byte { return wordBytes(g.tokens[id]) })
	if err != nil {
		return nil, err
	}
	lower := g.bool("normalizer.lowercase", true)
	return newWordPiece(v, wordPieceConfig{
		lowercase:    lower,
		stripAccents: g.bool("normalizer.strip_accents", lower),
		splitCJK:     true,
		cleanText:    true,
		maxWord:      maxWord,
	})
}

// respellWordPieces brings the tokens back to BERT's own spelling and marks
// those with a role.
func (g *ggufVocabulary) respellWordPieces(s Special) {
	spellings := make([]string, len(g.tokens))
	for id, spelling := range g.tokens {
		rest, starts := strings.CutPrefix(spelling, metaspace)
		switch {
		case starts:
			spellings[id] = rest
		case g.kinds[id] == kindNormal && !strings.HasPrefix(spelling, "["):
			spellings[id] = continuation + spelling
		default:
			spellings[id] = spelling
		}
	}
	g.tokens = spellings
	for _, id := range []int32{s.BOS, s.EOS, s.PAD, s.CLS, s.SEP, s.MASK} {
		if id >= 0 && g.kinds[id] == kindNormal {
			g.kinds[id] = kindControl
		}
	}
	if s.UNK >= 0 {
		g.kinds[s.UNK] = kindUnknown
	}
}
