package tokenizer

import (
	"fmt"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// maxWord is the longest word in characters that WordPiece looks at; a longer
// one is unknown (max_input_chars_per_word of BERT's tokenization.py).
const maxWord = 100

// continuation marks a token that goes on with a word.
const continuation = "##"

// wordPiece is BERT's tokenizer: text is cleaned and cut into words and single
// punctuation marks, each word is covered from the left by the longest tokens; a
// word that cannot be covered is one unknown token.
type wordPiece struct {
	vocabulary
	cfg     wordPieceConfig
	starts  trie      // tokens that begin a word
	goOn    trie      // tokens that go on with one, without their mark
	buffers sync.Pool // of *[]byte
}

// wordPieceConfig is BERT's normaliser and model settings.
type wordPieceConfig struct {
	lowercase    bool
	stripAccents bool
	splitCJK     bool // every Chinese character is a word
	cleanText    bool // control characters go, white space becomes a space
	maxWord      int  // characters
}

func newWordPiece(v vocabulary, cfg wordPieceConfig) (*wordPiece, error) {
	if v.special.UNK < 0 {
		return nil, fmt.Errorf("%w: a WordPiece vocabulary needs an unknown token", ErrMalformed)
	}
	t := &wordPiece{vocabulary: v, cfg: cfg}
	t.buffers.New = func() any { return new([]byte) }
	var starts, goOn []trieEntry
	for id, s := range v.spellings {
		rest, isContinuation := strings.CutPrefix(s, continuation)
		switch {
		case s == "" || !t.mergeable(int32(id)):
		case isContinuation && rest != "":
			goOn = append(goOn, trieEntry{rest, int32(id)})
		default:
			starts = append(starts, trieEntry{s, int32(id)})
		}
	}
	var err error
	if t.starts, err = buildTrie(starts); err != nil {
		return nil, err
	}
	t.goOn, err = buildTrie(goOn)
	return t, err
}

// Encode implements Tokenizer.
func (t *wordPiece) Encode(dst []int32, text string) []int32 {
	return t.encode(dst, text, t.userDefined, t)
}

// EncodeScaffold implements Tokenizer.
func (t *wordPiece) EncodeScaffold(dst []int32, text string) []int32 {
	return t.encode(dst, text, t.scaffold, t)
}

func (t *wordPiece) encodePlain(dst []int32, text string, _ bool) []int32 {
	if t.cfg.stripAccents {
		text = norm.NFD.String(text)
	}
	buffer := t.buffers.Get().(*[]byte)
	defer t.buffers.Put(buffer)
	word := (*buffer)[:0]
	for _, r := range text {
		switch t.treat(r) {
		case dropped:
		case between:
			dst, word = t.flushWord(dst, word), word[:0]
		case alone:
			dst, word = t.flushWord(dst, word), word[:0]
			dst = t.flushWord(dst, t.appendLower(word, r))
		case inWord:
			// A word beyond the limit is unknown, however it goes on.
			if len(word) <= utf8.UTFMax*t.cfg.maxWord {
				word = t.appendLower(word, r)
			}
		}
	}
	dst = t.flushWord(dst, word)
	*buffer = word[:0]
	return dst
}

// treatment is what becomes of one character.
type treatment uint8

const (
	inWord treatment = iota
	dropped
	between // ends a word and is gone
	alone   // is a word of its own
)

func (t *wordPiece) treat(r rune) treatment {
	switch {
	case t.cfg.cleanText && (r == 0 || r == utf8.RuneError):
		return dropped
	case t.cfg.cleanText && isControl(r):
		return dropped
	case unicode.IsSpace(r):
		return between
	case t.cfg.stripAccents && unicode.Is(unicode.Mn, r):
		return dropped
	case isPunctuation(r), t.cfg.splitCJK && isCJK(r):
		return alone
	}
	return inWord
}

func (t *wordPiece) appendLower(word []byte, r rune) []byte {
	if !t.cfg.lowercase {
		return utf8.AppendRune(word, r)
	}
	if r == 'İ' { // the one capital whose small form is two characters
		return append(word, "i\u0307"...)
	}
	return utf8.AppendRune(word, unicode.ToLower(r))
}

// isControl is category C (other) but for tab and line ends. The other
// characters of white space in that category, such as U+0085, count as control.
func isControl(r rune) bool {
	if r == '\t' || r == '\n' || r == '\r' {
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co)
}

// isPunctuation is category P and all of ASCII that is no letter, digit or
// space.
func isPunctuation(r rune) bool {
	if r < utf8.RuneSelf {
		return r > ' ' && r < 0x7f && classOf(r) == other
	}
	return unicode.IsPunct(r)
}

// isCJK is the ideograph blocks that BERT's tokenization.py names.
func isCJK(r rune) bool {
	switch {
	case r < 0x3400:
		return false
	case r >= 0x4e00 && r <= 0x9fff, r >= 0x3400 && r <= 0x4dbf, r >= 0xf900 && r <= 0xfaff:
		return true
	}
	return r >= 0x20000 && r <= 0x2a6df || r >= 0x2a700 && r <= 0x2b73f || r >= 0x2b740 && r <= 0x2b81f ||
		r >= 0x2b820 && r <= 0x2ceaf || r >= 0x2f800 && r <= 0x2fa1f
}

// flushWord appends the tokens of a word, one unknown token if they do not
// cover it.
func (t *wordPiece) flushWord(dst []int32, word []byte) []int32 {
	if len(word) == 0 {
		return dst
	}
	mark := len(dst)
	if utf8.RuneCount(word) > t.cfg.maxWord {
		return append(dst, t.special.UNK)
	}
	rest, from := string(word), t.starts
	for rest != "" {
		n, id := from.longest(rest)
		if n == 0 {
			return append(dst[:mark], t.special.UNK)
		}
		dst = append(dst, id)
		rest, from = rest[n:], t.goOn
	}
	return dst
}

// wordBytes is a token in running text: a space before a word's first token.
func wordBytes(spelling string) []byte {
	if rest, ok := strings.CutPrefix(spelling, continuation); ok {
		return []byte(rest)
	}
	return []byte(" " + spelling)
}
