package tokenizer

import (
	"encoding/json"
	"fmt"
)

// jsonFile is the two files as far as they matter here.
type jsonFile struct {
	file struct {
		AddedTokens   []addedToken `json:"added_tokens"`
		Normalizer    *component   `json:"normalizer"`
		PreTokenizer  *component   `json:"pre_tokenizer"`
		PostProcessor *component   `json:"post_processor"`
		Model         struct {
			Type         string          `json:"type"`
			Vocab        json.RawMessage `json:"vocab"`
			Merges       []jsonMerge     `json:"merges"`
			UnkToken     *string         `json:"unk_token"`
			UnkID        *int32          `json:"unk_id"`
			ByteFallback bool            `json:"byte_fallback"`
			IgnoreMerges bool            `json:"ignore_merges"`
			MaxWord      int             `json:"max_input_chars_per_word"`
			Prefix       *string         `json:"continuing_subword_prefix"`
			Suffix       *string         `json:"end_of_word_suffix"`
		} `json:"model"`
	}
	config tokenizerConfig

	tokens []string
	kinds  []kind
	ids    map[string]int32
}

type addedToken struct {
	ID      int32  `json:"id"`
	Content string `json:"content"`
	Special bool   `json:"special"`
	// LStrip and RStrip take the white space before and behind the token away.
	LStrip bool `json:"lstrip"`
	RStrip bool `json:"rstrip"`
}

// tokenizerConfig is tokenizer_config.json.
type tokenizerConfig struct {
	BOS         tokenName `json:"bos_token"`
	EOS         tokenName `json:"eos_token"`
	UNK         tokenName `json:"unk_token"`
	PAD         tokenName `json:"pad_token"`
	CLS         tokenName `json:"cls_token"`
	SEP         tokenName `json:"sep_token"`
	MASK        tokenName `json:"mask_token"`
	AddBOS      bool      `json:"add_bos_token"`
	AddEOS      bool      `json:"add_eos_token"`
	Lowercase   *bool     `json:"do_lower_case"`
	StripAccent *bool     `json:"strip_accents"`
	SplitCJK    *bool     `json:"tokenize_chinese_chars"`
}

// tokenName is a token's spelling, written as a string or as an object.
type tokenName string

// UnmarshalJSON implements json.Unmarshaler.
func (n *tokenName) UnmarshalJSON(data []byte) error {
	var object struct {
		Content string `json:"content"`
	}
	if len(data) > 0 && data[0] == '{' {
		err := json.Unmarshal(data, &object)
		*n = tokenName(object.Content)
		return err
	}
	return json.Unmarshal(data, (*string)(n))
}

// jsonMerge is a merge, written as "a b" or as ["a", "b"].
type jsonMerge [2]string

// UnmarshalJSON implements json.Unmarshaler.
func (m *jsonMerge) UnmarshalJSON(data []byte) error {
	if len(data) == 0 || data[0] != '"' {
		var pair []string
		if err := json.Unmarshal(data, &pair); err != nil {
			return err
		}
		if len(pair) != 2 {
			return fmt.Errorf("a merge of %d tokens", len(pair))
		}
		*m = jsonMerge(pair)
		return nil
	}
	var line string
	if err := json.Unmarshal(data, &line); err != nil {
		return err
	}
	pair, err := splitMerge(line)
	*m = pair
	return err
}

// modelType is the model's type; older files leave it out.
func (f *jsonFile) modelType() string {
	m := &f.file.Model
	switch {
	case m.Type != "":
		return m.Type
	case m.Merges != nil:
		return "BPE"
	case len(m.Vocab) > 0 && m.Vocab[0] == '[':
		return "Unigram"
	case m.MaxWord > 0:
		return "WordPiece"
	}
	return ""
}

// readVocab reads a vocabulary written as an object of ids.
func (f *jsonFile) readVocab() error {
	var ids map[string]int32
	if err := json.Unmarshal(f.file.Model.Vocab, &ids); err != nil {
		return fmt.Errorf("%w: vocab: %w", ErrMalformed, err)
	}
	return f.index(ids)
}

// index lays the tokens out by id. Ids that no token has are unused.
func (f *jsonFile) index(ids map[string]int32) error {
	limit := int32(4*(len(ids)+len(f.file.AddedTokens)) + 1024)
	size := int32(0)
	place := func(s string, id int32) error {
		if id < 0 || id >= limit {
			return fmt.Errorf("%w: token %q has id %d in a vocabulary of %d", ErrMalformed, s, id, len(ids))
		}
		size = max(size, id+1)
		return nil
	}
	for s, id := range ids {
		if err := place(s, id); err != nil {
			return err
		}
	}
	for _, a := range f.file.AddedTokens {
		if err := place(a.Content, a.ID); err != nil {
			return err
		}
	}
	f.ids, f.tokens, f.kinds = ids, make([]string, size), make([]kind, size)
	for id := range f.kinds {
		f.kinds[id] = kindUnused
	}
	for s, id := range ids {
		f.tokens[id], f.kinds[id] = s, kindNormal
	}
	f.placeAdded()
	return nil
}

func (f *jsonFile) placeAdded() {
	if f.ids == nil {
		f.ids = map[string]int32{}
	}
	for _, a := range f.file.AddedTokens {
		f.tokens[a.ID], f.ids[a.Content] = a.Content, a.ID
		switch {
		case a.Content == f.unknownName():
			f.kinds[a.ID] = kindUnknown
		case a.Special:
			f.kinds[a.ID] = kindControl
		default:
			f.kinds[a.ID] = kindUserDefined
		}
	}
}

func (f *jsonFile) unknownName() string {
	if f.file.Model.UnkToken != nil {
		return *f.file.Model.UnkToken
	}
	return string(f.config.UNK)
}

// vocabulary finishes the shared part.
func (f *jsonFile) vocabulary(piece func(id int) []byte) (vocabulary, error) {
	s := noSpecial()
	for _, role := range []struct {
		id   *int32
		name string
	}{
		{&s.BOS, string(f.config.BOS)},
		{&s.EOS, string(f.config.EOS)},
		{&s.UNK, f.unknownName()},
		{&s.PAD, string(f.config.PAD)},
		{&s.CLS, string(f.config.CLS)},
		{&s.SEP, string(f.config.SEP)},
		{&s.MASK, string(f.config.MASK)},
	} {
		if id, ok := f.ids[role.name]; ok && role.name != "" {
			*role.id = id
		}
	}
	named := s.EOS
	if id := f.file.Model.UnkID; id != nil {
		s.UNK = *id
	}
	s.AddBOS, s.AddEOS = f.config.AddBOS && s.BOS >= 0, f.config.AddEOS && s.EOS >= 0
	if err := f.applyTemplate(&s); err != nil {
		return vocabulary{}, err
	}
	v, err := newVocabulary(f.tokens, f.kinds, s, piece)
	if err != nil {
		return vocabulary{}, err
	}
	v.setEndOfGeneration(named)
	for _, a := range f.file.AddedTokens {
		if a.LStrip || a.RStrip {
			v.strips[a.ID] = strip{left: a.LStrip, right: a.RStrip}
		}
	}
	return v, nil
}
