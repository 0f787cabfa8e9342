package tokenizer

import (
	"encoding/json"
	"fmt"
)

// FromJSON makes the tokenizer that Hugging Face's tokenizer.json describes:
// models BPE (byte-level, or SentencePiece's with byte fallback), Unigram and
// WordPiece. config is tokenizer_config.json, which names the roles; it may be
// empty. Parts that this package does not know are ErrUnsupported: what is
// accepted gives the ids that the file's own library gives.
func FromJSON(data, config []byte) (Tokenizer, error) {
	var f jsonFile
	if err := json.Unmarshal(data, &f.file); err != nil {
		return nil, fmt.Errorf("%w: tokenizer.json: %w", ErrMalformed, err)
	}
	if len(config) > 0 {
		if err := json.Unmarshal(config, &f.config); err != nil {
			return nil, fmt.Errorf("%w: tokenizer_config.json: %w", ErrMalformed, err)
		}
	}
	switch f.modelType() {
	case "BPE":
		if f.file.Model.ByteFallback {
			return f.sentencePiece()
		}
		return f.bpe()
	case "Unigram":
		return f.unigram()
	case "WordPiece":
		return f.wordPiece()
	}
	return nil, fmt.Errorf("%w: tokenizer.json model type %q", ErrUnsupported, f.file.Model.Type)
}

func (f *jsonFile) bpe() (Tokenizer, error) {
	m := &f.file.Model
	if nonEmpty(m.Prefix) || nonEmpty(m.Suffix) {
		return nil, fmt.Errorf("%w: BPE with a word prefix or suffix", ErrUnsupported)
	}
	if err := f.readVocab(); err != nil {
		return nil, err
	}
	cfg := bpeConfig{ignoreMerges: m.IgnoreMerges, merges: make([][2]string, len(m.Merges))}
	for i, pair := range m.Merges {
		cfg.merges[i] = pair
	}
	var err error
	if cfg.nfc, err = f.file.Normalizer.onlyNFC(); err != nil {
		return nil, err
	}
	if cfg.split, err = f.file.PreTokenizer.splitter(); err != nil {
		return nil, err
	}
	speller := newByteSpeller()
	v, err := f.vocabulary(func(id int) []byte {
		if f.kinds[id] == kindUserDefined {
			return []byte(f.tokens[id])
		}
		return speller.bytes(f.tokens[id])
	})
	if err != nil {
		return nil, err
	}
	return newBPE(v, cfg)
}

func nonEmpty(s *string) bool { return s != nil && *s != "" }

func (f *jsonFile) sentencePiece() (Tokenizer, error) {
	if f.file.Model.IgnoreMerges {
		return nil, fmt.Errorf("%w: ignore_merges with byte_fallback", ErrUnsupported)
	}
	prefix, err := f.metaspacePrefix()
	if err != nil {
		return nil, err
	}
	if err := f.readVocab(); err != nil {
		return nil, err
	}
	for id, s := range f.tokens {
		if _, ok := byteToken(s); ok && f.kinds[id] == kindNormal {
			f.kinds[id] = kindByte
		}
	}
	v, err := f.vocabulary(f.spaced)
	if err != nil {
		return nil, err
	}
	merges := make([][2]string, len(f.file.Model.Merges))
	for i, pair := range f.file.Model.Merges {
		merges[i] = pair
	}
	table, err := v.readMerges(merges)
	if err != nil {
		return nil, err
	}
	t := newSentencePiece(v, prefix)
	t.merges = table
	return t, nil
}

// spaced is the bytes of a SentencePiece token.
func (f *jsonFile) spaced(id int) []byte { return spaced(f.tokens[id], f.kinds[id]) }

func (f *jsonFile) unigram() (Tokenizer, error) {
	cfg, err := f.unigramConfig()
	if err != nil {
		return nil, err
	}
	var pieces [][2]json.RawMessage
	if err := json.Unmarshal(f.file.Model.Vocab, &pieces); err != nil {
		return nil, fmt.Errorf("%w: vocab: %w", ErrMalformed, err)
	}
	ids, list := make(map[string]int32, len(pieces)), make([]float32, len(pieces))
	for i, p := range pieces {
		var s string
		if err := json.Unmarshal(p[0], &s); err != nil {
			return nil, fmt.Errorf("%w: vocab entry %d: %w", ErrMalformed, i, err)
		}
		if err := json.Unmarshal(p[1], &list[i]); err != nil {
			return nil, fmt.Errorf("%w: vocab entry %d: %w", ErrMalformed, i, err)
		}
		if _, dup := ids[s]; !dup {
			ids[s] = int32(i)
		}
	}
	if err := f.index(ids); err != nil {
		return nil, err
	}
	if id := f.file.Model.UnkID; id != nil && *id >= 0 && int(*id) < len(f.kinds) {
		f.kinds[*id] = kindUnknown
	}
	v, err := f.vocabulary(f.spaced)
	if err != nil {
		return nil, err
	}
	scores := make([]float32, len(f.tokens))
	copy(scores, list)
	return newUnigram(v, scores, cfg)
}

func (f *jsonFile) wordPiece() (Tokenizer, error) {
	m := &f.file.Model
	if m.Prefix != nil && *m.Prefix != continuation {
		return nil, fmt.Errorf("%w: continuing_subword_prefix %q", ErrUnsupported, *m.Prefix)
	}
	cfg, err := f.bertConfig()
	if err != nil {
		return nil, err
	}
	if m.MaxWord > 0 {
		cfg.maxWord = m.MaxWord
	}
	if err := f.readVocab(); err != nil {
		return nil, err
	}
	v, err := f.vocabulary(func(id int) []byte { return wordBytes(f.tokens[id]) })
	if err != nil {
		return nil, err
	}
	return newWordPiece(v, cfg)
}
