package chunk

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// abbreviations are words whose point does not end a sentence, in small letters.
var abbreviations = map[string]bool{
	"e.g": true, "i.e": true, "cf": true, "vs": true, "al": true, "approx": true, "ca": true, "incl": true,
	"mr": true, "mrs": true, "ms": true, "dr": true, "prof": true, "st": true,
}

// numbered are words whose point does not end a sentence before a number.
var numbered = map[string]bool{
	"no": true, "nos": true, "fig": true, "figs": true, "eq": true, "sec": true, "ch": true, "vol": true, "p": true, "pp": true, "ed": true,
	"jan": true, "feb": true, "apr": true, "jun": true, "jul": true, "aug": true, "sep": true, "sept": true, "oct": true, "nov": true, "dec": true,
}

// endsSentence decides about the point at dot, in the sentence from start, with
// the closers ending at end.
func endsSentence(text string, start, dot, end int) bool {
	next, _ := utf8.DecodeRuneInString(strings.TrimLeft(text[end:min(end+32, len(text))], " \t"))
	if unicode.IsLower(next) {
		return false
	}
	word := lastWord(text[max(start, dot-24):dot])
	small := strings.ToLower(word)
	if abbreviations[small] && next != '\n' || numbered[small] && unicode.IsDigit(next) {
		return false
	}
	if utf8.RuneCountInString(word) == 1 && unicode.IsUpper([]rune(word)[0]) && unicode.IsUpper(next) {
		return false // an initial
	}
	return !listNumber(text[start:dot])
}

// lastWord is what stands before the point, back to a space or a bracket.
func lastWord(s string) string {
	return s[strings.LastIndexAny(s, " \n\t([\"'")+1:]
}

// listNumber reports a sentence that so far is only "12": the mark of a list item.
func listNumber(s string) bool {
	s = strings.TrimSpace(s)
	return s != "" && len(s) <= 3 && strings.Trim(s, "0123456789") == ""
}
