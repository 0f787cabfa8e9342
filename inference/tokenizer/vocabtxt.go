package tokenizer

import (
	"encoding/json"
	"fmt"
	"strings"
)

// FromVocabTxt makes the WordPiece tokenizer of a BERT vocab.txt: one token a
// line, its number the id. config is tokenizer_config.json and may be empty.
func FromVocabTxt(data, config []byte) (Tokenizer, error) {
	var f jsonFile
	if len(config) > 0 {
		if err := json.Unmarshal(config, &f.config); err != nil {
			return nil, fmt.Errorf("%w: tokenizer_config.json: %w", ErrMalformed, err)
		}
	}
	f.defaultBERTRoles()
	ids := map[string]int32{}
	for i, line := range strings.Split(strings.TrimRight(string(data), "\r\n"), "\n") {
		s := strings.TrimRight(line, "\r")
		ids[s] = int32(i)
	}
	for _, name := range []tokenName{f.config.UNK, f.config.PAD, f.config.CLS, f.config.SEP, f.config.MASK} {
		if id, ok := ids[string(name)]; ok {
			f.file.AddedTokens = append(f.file.AddedTokens, addedToken{ID: id, Content: string(name), Special: true})
		}
	}
	if err := f.index(ids); err != nil {
		return nil, err
	}
	f.config.BOS, f.config.EOS, f.config.AddBOS, f.config.AddEOS = f.config.CLS, f.config.SEP, true, true
	v, err := f.vocabulary(func(id int) []byte { return wordBytes(f.tokens[id]) })
	if err != nil {
		return nil, err
	}
	v.special.Pair = bertJoint(v.special.CLS, v.special.SEP)
	return newWordPiece(v, f.configuredBERT())
}

// bertConfig reads BERT's normaliser and pre-tokenizer.
func (f *jsonFile) bertConfig() (wordPieceConfig, error) {
	normalizers, split := f.file.Normalizer.parts(), f.file.PreTokenizer.parts()
	if len(normalizers) != 1 || normalizers[0].Type != "BertNormalizer" {
		return wordPieceConfig{}, fmt.Errorf("%w: WordPiece without BertNormalizer", ErrUnsupported)
	}
	if len(split) != 1 || split[0].Type != "BertPreTokenizer" {
		return wordPieceConfig{}, fmt.Errorf("%w: WordPiece without BertPreTokenizer", ErrUnsupported)
	}
	n := normalizers[0]
	cfg := wordPieceConfig{
		lowercase:    n.Lowercase,
		stripAccents: n.Lowercase,
		splitCJK:     n.ChineseChar,
		cleanText:    n.CleanText,
		maxWord:      maxWord,
	}
	if n.StripAccent != nil {
		cfg.stripAccents = *n.StripAccent
	}
	return cfg, nil
}

// configuredBERT is the same from tokenizer_config.json, with BERT's defaults.
func (f *jsonFile) configuredBERT() wordPieceConfig {
	set := func(v *bool, otherwise bool) bool {
		if v == nil {
			return otherwise
		}
		return *v
	}
	lower := set(f.config.Lowercase, true)
	return wordPieceConfig{
		lowercase:    lower,
		stripAccents: set(f.config.StripAccent, lower),
		splitCJK:     set(f.config.SplitCJK, true),
		cleanText:    true,
		maxWord:      maxWord,
	}
}

// defaultBERTRoles names the roles that tokenizer_config.json leaves out.
func (f *jsonFile) defaultBERTRoles() {
	for _, role := range []struct {
		name      *tokenName
		otherwise tokenName
	}{
		{&f.config.UNK, "[UNK]"},
		{&f.config.PAD, "[PAD]"},
		{&f.config.CLS, "[CLS]"},
		{&f.config.SEP, "[SEP]"},
		{&f.config.MASK, "[MASK]"},
	} {
		if *role.name == "" {
			*role.name = role.otherwise
		}
	}
}
