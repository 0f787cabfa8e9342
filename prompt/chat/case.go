package chat

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/language"
)

// changeCase keeps every character's origin, so it works span by span.
func changeCase(id string, t text) text {
	switch id {
	case "upper":
		return t.mapSpans(upper)
	case "lower":
		return t.mapSpans(lower)
	case "title":
		return t.mapSpans(cases.Title(language.Und).String)
	}
	offs := t.offsets()
	if len(offs) == 1 {
		return t
	}
	head, rest := t.slice(0, offs[1]), t.slice(offs[1], len(t.s))
	return concat(changeCase("title", head), changeCase("lower", rest))
}

// upper and lower use the full case mappings only where they can matter.
func upper(s string) string {
	if ascii(s) {
		return strings.ToUpper(s)
	}
	return cases.Upper(language.Und).String(s)
}

func lower(s string) string {
	if ascii(s) {
		return strings.ToLower(s)
	}
	return cases.Lower(language.Und).String(s)
}

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
