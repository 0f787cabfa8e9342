package ingest

import "unicode"

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
