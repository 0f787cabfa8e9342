package lexical

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/kljensen/snowball/english"
	"golang.org/x/text/unicode/norm"

	"ragd/ingest"
)

// maxTerm bounds a term in characters: encoded data without a space would not fit
// into an index. What is longer is cut, in documents and questions alike.
const maxTerm = 64

// Analyzer turns text into terms. It needs no language: a text is brought into
// the form NFKC, cut into runs where the script changes, and each run is treated
// by its script.
//
//   - Latin letters and digits: Snowball's English stem, stop words dropped.
//     Identifiers (ERR-4402, max_len, camelCase, v1.2.3) are kept whole as well.
//   - Hangul: one ending stripped, a mark set before the word, then pairs of
//     characters.
//   - Han, kana and the scripts written without spaces: pairs of characters.
//   - Any other script: the word as it is. An emoji is a word of its own.
//
// The zero value is ready. It is safe for concurrent use.
type Analyzer struct{}

var _ ingest.Analyzer = Analyzer{}

// Terms returns each term of text with the number of times it occurs. Terms are
// valid UTF-8 without U+0000, at most 64 characters long.
func (Analyzer) Terms(text string) map[string]int {
	t := terms{}
	for rest := norm.NFKC.String(text); rest != ""; {
		run, class, size := nextRun(rest)
		t.add(run, class)
		rest = rest[size:]
	}
	return t
}

// class says how a run is treated.
type class uint8

const (
	separator class = iota
	invisible       // neither separates nor counts
	mark            // belongs to the letter before it
	latin
	hangul
	unspaced
	other
	emoji
)

// joins are the signs that hold an identifier together.
const joins = "-_.\u2010"

func classify(r rune) class {
	switch {
	case r < utf8.RuneSelf:
		if 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' {
			return latin
		}
		return separator
	case unicode.Is(unicode.Hangul, r):
		return hangul
	case unicode.In(r, unicode.Cf, unicode.Variation_Selector):
		return invisible
	case unicode.Is(unicode.M, r):
		return mark
	case unicode.In(r, unicode.Latin, unicode.Nd):
		return latin
	case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Thai, unicode.Lao, unicode.Khmer, unicode.Myanmar) || r == 'ー':
		return unspaced
	case unicode.IsLetter(r):
		return other
	case 0x2600 <= r && r <= 0x27BF, 0x1F000 <= r && r <= 0x1FAFF:
		return emoji
	}
	return separator
}

// nextRun returns the first run of s without its invisible characters, its class
// and how many bytes of s it covers. A run of Latin may be a whole identifier,
// its joining signs included.
func nextRun(s string) (run string, c class, size int) {
	hidden := false
	for i, r := range s {
		k := classify(r)
		switch {
		case k == invisible:
			hidden = true
		case i == 0:
			c = k
		case k == mark && c != separator && c != emoji:
		case k == c && c != separator && c != emoji:
		case c == latin && joint(s[i:], r):
		default:
			return visible(s[:i], hidden), c, i
		}
	}
	return visible(s, hidden), c, len(s)
}

// joint says whether the sign r at the start of s joins a letter or digit before
// it to one behind it.
func joint(s string, r rune) bool {
	if !strings.ContainsRune(joins, r) {
		return false
	}
	next, _ := utf8.DecodeRuneInString(s[utf8.RuneLen(r):])
	return classify(next) == latin
}

func visible(s string, hidden bool) string {
	if !hidden {
		return s
	}
	return strings.Map(func(r rune) rune {
		if classify(r) == invisible {
			return -1
		}
		return r
	}, s)
}

// terms counts what it is given.
type terms map[string]int

func (t terms) add(run string, c class) {
	switch c {
	case latin:
		t.identifier(run)
	case hangul:
		t.pairs(wordMark + stripEnding(run))
	case unspaced:
		t.pairs(run)
	case other:
		t.count(strings.ToLower(run))
	case emoji:
		t.count(run)
	}
}

func (t terms) count(term string) {
	if len(term) > maxTerm {
		n := 0
		for i := range term {
			if n == maxTerm {
				term = term[:i]
				break
			}
			n++
		}
	}
	t[term]++
}

// pairs counts every two neighbouring characters; a single one counts alone.
func (t terms) pairs(run string) {
	_, n := utf8.DecodeRuneInString(run)
	if n == len(run) {
		t.count(run)
		return
	}
	for start, end := 0, n; end < len(run); {
		_, next := utf8.DecodeRuneInString(run[end:])
		t.count(run[start : end+next])
		start, end = end, end+next
	}
}

// word counts a word of Latin letters or digits by its stem.
func (t terms) word(w string) {
	w = strings.ToLower(w)
	if stopWords[w] {
		return
	}
	t.count(english.Stem(w, true))
}
