package lexical

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// stopWords are the English words that tell nothing about a document.
var stopWords = set(`a an and are as at be but by for if in into is it no not of on or such that the their then there
	these they this to was will with what which who how when where why do does did from have has had were been can could
	would should`)

// identifier counts the words of a run of Latin letters, digits and joining
// signs, and the run itself where it is more than one word.
func (t terms) identifier(run string) {
	words := strings.FieldsFunc(run, func(r rune) bool { return strings.ContainsRune(joins, r) })
	for _, w := range words {
		t.word(w)
		t.humps(w)
	}
	if len(words) < 2 {
		return
	}
	whole := strings.ReplaceAll(strings.ToLower(run), "\u2010", "-")
	t.count(whole)
	// "v1.2.3" and "1.2.3" name one version.
	if len(whole) > 2 && whole[0] == 'v' && '0' <= whole[1] && whole[1] <= '9' {
		t.count(whole[1:])
	}
}

// humps counts the parts of camelCase and HTTPServer; a word without humps has
// been counted as it is.
func (t terms) humps(w string) {
	start := 0
	for i := range w {
		if i > 0 && isHump(w, i) {
			t.hump(w[start:i])
			start = i
		}
	}
	if start > 0 {
		t.hump(w[start:])
	}
}

// hump leaves single letters out: the m of mRNA says nothing.
func (t terms) hump(part string) {
	if utf8.RuneCountInString(part) > 1 {
		t.word(part)
	}
}

// isHump says whether a new part starts at byte i: a capital after a small
// letter, or the last capital of several before a small letter.
func isHump(w string, i int) bool {
	r, n := utf8.DecodeRuneInString(w[i:])
	if !unicode.IsUpper(r) {
		return false
	}
	before, _ := utf8.DecodeLastRuneInString(w[:i])
	after, _ := utf8.DecodeRuneInString(w[i+n:])
	return unicode.IsLower(before) || unicode.IsUpper(before) && unicode.IsLower(after)
}

// isIdentifier says whether a term names one thing: a code or a version (letters
// and digits joined, or three numbers), or a name with underscores. A hyphened word
// or a decimal number does not.
func isIdentifier(term string) bool {
	parts := strings.FieldsFunc(term, func(r rune) bool { return strings.ContainsRune(joins, r) })
	if len(parts) < 2 {
		return false
	}
	letter, digit := strings.ContainsFunc(term, unicode.IsLetter), strings.ContainsFunc(term, unicode.IsDigit)
	return digit && (letter || len(parts) > 2) || strings.Contains(term, "_")
}
