package ingest

import (
	"regexp"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// HasText reports whether s holds anything worth indexing: a letter, a digit
// or a pictograph. Punctuation, rules of dashes, markup characters, spaces and
// invisible characters (zero width, fillers, marks of order) are not text.
func HasText(s string) bool {
	for _, r := range s {
		if unicode.IsLetter(r) && !filler(r) || unicode.IsNumber(r) || unicode.Is(unicode.So, r) && r != unicode.ReplacementChar && r != '\u2800' {
			return true
		}
	}
	return false
}

// filler reports the letters that are drawn as nothing: Unicode classes the
// Hangul fillers as letters.
func filler(r rune) bool {
	return r == '\u115F' || r == '\u1160' || r == '\u3164' || r == '\uFFA0'
}

// jamo are the letters of a decomposed Hangul syllable; vowel is how each of its
// vowels begins in UTF-8.
var jamo = regexp.MustCompile(`[\x{1100}-\x{1112}][\x{1161}-\x{1175}][\x{11A8}-\x{11C2}]?`)

const vowel = "\xe1\x85"

// ComposeHangul writes each syllable that is spelt by its letters (the form NFD, in
// which macOS keeps file names) as the one character that models were made for. Of all
// that NFC does it does no more: that would also replace characters by others.
func ComposeHangul(s string) string {
	if !strings.Contains(s, vowel) {
		return s
	}
	return jamo.ReplaceAllStringFunc(s, norm.NFC.String)
}
