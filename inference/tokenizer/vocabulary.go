package tokenizer

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"unicode"
)

// Errors that loading a vocabulary can give; they are wrapped with what was
// wrong.
var (
	// ErrUnsupported is a kind of tokenizer, pre-tokenizer or normaliser that
	// this package does not know. It never falls back to a similar one.
	ErrUnsupported = errors.New("tokenizer: unsupported")
	// ErrMalformed is metadata that contradicts itself or lacks a part.
	ErrMalformed = errors.New("tokenizer: malformed vocabulary")
)

// kind is what a token is for; the numbers are those of GGUF's
// tokenizer.ggml.token_type.
type kind uint8

const (
	kindNormal      kind = 1
	kindUnknown     kind = 2
	kindControl     kind = 3
	kindUserDefined kind = 4
	kindUnused      kind = 5
	kindByte        kind = 6
)

// vocabulary is what all tokenizers share: the tokens, their bytes and roles.
// It does not change after newVocabulary.
type vocabulary struct {
	spellings []string
	kinds     []kind
	ids       map[string]int32
	special   Special

	// Token i stands for pieces[ends[i-1]:ends[i]].
	pieces []byte
	ends   []uint32

	userDefined *matcher // found in any text before the algorithm runs
	scaffold    *matcher // the same and the control and unknown tokens
	strips      map[int32]strip
}

// strip says on which sides of a token found by its spelling white space goes.
type strip struct{ left, right bool }

// newVocabulary checks and indexes tokens. piece gives the bytes of a token
// that is neither control nor unknown.
func newVocabulary(spellings []string, kinds []kind, special Special, piece func(id int) []byte) (vocabulary, error) {
	if len(spellings) == 0 || len(spellings) > math.MaxInt32 {
		return vocabulary{}, fmt.Errorf("%w: %d tokens", ErrMalformed, len(spellings))
	}
	if len(kinds) != len(spellings) {
		return vocabulary{}, fmt.Errorf("%w: %d token types for %d tokens", ErrMalformed, len(kinds), len(spellings))
	}
	v := vocabulary{spellings: spellings, kinds: kinds, special: special}
	if err := v.checkSpecial(); err != nil {
		return vocabulary{}, err
	}
	v.ids, v.strips = make(map[string]int32, len(spellings)), map[int32]strip{}
	v.ends = make([]uint32, len(spellings))
	for id, s := range spellings {
		if _, dup := v.ids[s]; !dup && s != "" {
			v.ids[s] = int32(id)
		}
		if kinds[id] != kindControl && kinds[id] != kindUnknown {
			v.pieces = append(v.pieces, piece(id)...)
		}
		v.ends[id] = uint32(len(v.pieces))
	}
	return v, v.buildMatchers()
}

func (v *vocabulary) buildMatchers() error {
	var user, scaffold []trieEntry
	for id, k := range v.kinds {
		e := trieEntry{v.spellings[id], int32(id)}
		switch {
		case e.key == "":
		case k == kindUserDefined:
			user, scaffold = append(user, e), append(scaffold, e)
		case k == kindControl || k == kindUnknown:
			scaffold = append(scaffold, e)
		}
	}
	var err error
	if v.userDefined, err = newMatcher(user); err != nil {
		return err
	}
	v.scaffold, err = newMatcher(scaffold)
	return err
}

// checkSpecial refuses roles given to ids that do not exist, and BOS or EOS
// that must be added but is not known.
func (v *vocabulary) checkSpecial() error {
	s := &v.special
	roles := []struct {
		name string
		id   int32
	}{{"BOS", s.BOS}, {"EOS", s.EOS}, {"UNK", s.UNK}, {"PAD", s.PAD}, {"CLS", s.CLS}, {"SEP", s.SEP}, {"MASK", s.MASK}}
	for _, r := range roles {
		if r.id < -1 || int(r.id) >= len(v.spellings) {
			return fmt.Errorf("%w: %s is id %d, the vocabulary has %d", ErrMalformed, r.name, r.id, len(v.spellings))
		}
	}
	for _, id := range s.Pair.ids() {
		if id < 0 || int(id) >= len(v.spellings) {
			return fmt.Errorf("%w: pairs are joined by id %d, the vocabulary has %d", ErrMalformed, id, len(v.spellings))
		}
	}
	if s.AddBOS && s.BOS < 0 {
		return fmt.Errorf("%w: BOS is to be added but has no id", ErrMalformed)
	}
	if s.AddEOS && s.EOS < 0 {
		return fmt.Errorf("%w: EOS is to be added but has no id", ErrMalformed)
	}
	return nil
}

// Piece implements Tokenizer.
func (v *vocabulary) Piece(id int32) []byte {
	if id < 0 || int(id) >= len(v.ends) {
		return nil
	}
	start := uint32(0)
	if id > 0 {
		start = v.ends[id-1]
	}
	end := v.ends[id]
	return v.pieces[start:end:end]
}

// Control implements Tokenizer.
func (v *vocabulary) Control(id int32) bool {
	return id >= 0 && int(id) < len(v.kinds) && v.kinds[id] == kindControl
}

// ID implements Tokenizer.
func (v *vocabulary) ID(spelling string) (int32, bool) {
	id, ok := v.ids[spelling]
	return id, ok
}

// Size implements Tokenizer.
func (v *vocabulary) Size() int { return len(v.spellings) }

// Special implements Tokenizer.
func (v *vocabulary) Special() Special { return v.special }

// plainEncoder is the algorithm of one kind of vocabulary, over text in which
// no token is to be found by its spelling. starts: nothing or a token found by
// its spelling stands in front of the text.
type plainEncoder interface {
	encodePlain(dst []int32, text string, starts bool) []int32
}

func (s strip) apply(before, behind string) (string, string) {
	if s.left {
		before = strings.TrimRightFunc(before, unicode.IsSpace)
	}
	if s.right {
		behind = strings.TrimLeftFunc(behind, unicode.IsSpace)
	}
	return before, behind
}

// encode cuts text at the tokens that m finds and gives what lies between to e.
func (v *vocabulary) encode(dst []int32, text string, m *matcher, e plainEncoder) []int32 {
	starts := len(dst) == 0 || v.Control(dst[len(dst)-1])
	for text != "" {
		start, length, id := m.next(text)
		plain, rest := text[:start], text[start+length:]
		if length > 0 {
			plain, rest = v.strips[id].apply(plain, rest)
		}
		if plain != "" {
			dst = e.encodePlain(dst, plain, starts)
		}
		if length == 0 {
			break
		}
		dst = append(dst, id)
		text = rest
		starts = true
	}
	return dst
}

// Raw is text as a whole sequence without a chat template: BOS before and EOS
// behind it where the vocabulary asks for them, each exactly once. A BOS that
// text spells out is ordinary text.
func Raw(t Tokenizer, text string) []int32 {
	s := t.Special()
	var ids []int32
	if s.AddBOS {
		ids = append(ids, s.BOS)
	}
	ids = t.Encode(ids, text)
	if s.AddEOS {
		ids = append(ids, s.EOS)
	}
	return ids
}

// LogProb is the natural logarithm of a token's probability, for a vocabulary that
// is a unigram language model; ok is false for any other and for control tokens.
func LogProb(t Tokenizer, id int32) (p float32, ok bool) {
	u, ok := t.(*unigram)
	if !ok || id < 0 || int(id) >= len(u.scores) || u.kinds[id] != kindNormal {
		return 0, false
	}
	return u.scores[id], true
}

// Chat completes the ids of a rendered chat template: BOS goes in front where
// the vocabulary asks for it and the template did not write it. Whatever the
// template wrote stays as it is, twice if need be.
func Chat(t Tokenizer, ids []int32) []int32 {
	s := t.Special()
	if !s.AddBOS || len(ids) > 0 && ids[0] == s.BOS {
		return ids
	}
	return append([]int32{s.BOS}, ids...)
}
