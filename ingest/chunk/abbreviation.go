package chunk

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"ragd/ingest/internal/markdown"
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
	rest := strings.TrimLeftFunc(text[end:min(end+32, len(text))], func(r rune) bool { return r != '\n' && unicode.IsSpace(r) })
	next, _ := utf8.DecodeRuneInString(rest)
	if unicode.IsLower(next) || inDate(text[max(start, dot-24):dot], rest) {
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

// dateHead is a date up to its month or day as Korean writes it, each with a point
// behind it: "2024. 3. 15." or "’24.3.15."; dateYear is the beginning of one, and
// dateNext what follows its year or month.
var (
	dateHead = regexp.MustCompile(`(?:^|\D)(?:\d{4}|['‘’]\d{2})\.[ \t]?\d{1,2}(?:\.[ \t]?\d{1,2})?$`)
	dateYear = regexp.MustCompile(`(?:^|\D)(?:\d{4}|['‘’]\d{2})$`)
	dateNext = regexp.MustCompile(`^\d{1,2}\.`)
)

// inDate reports a point behind the year, month or day of a date, with text before
// and after it. Only the end of a line makes the last one the end of a sentence too.
func inDate(before, after string) bool {
	return dateHead.MatchString(before) && !strings.HasPrefix(after, "\n") || dateYear.MatchString(before) && dateNext.MatchString(after)
}

// lastWord is what stands before the point, back to a space or a bracket.
func lastWord(s string) string {
	return s[strings.LastIndexAny(s, " \n\t([\"'")+1:]
}

// listNumber reports a sentence that so far is only "12" or "가": the mark of a list item.
func listNumber(s string) bool {
	s = strings.TrimSpace(s)
	return listMark.MatchString(s)
}

var listMark = regexp.MustCompile(`^(?:\d{1,3}|` + markdown.ListLetter + `)$`)
