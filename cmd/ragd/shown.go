package main

import (
	"strings"
	"unicode"
)

// shown is text of documents, their names and models as a terminal may have it: what
// would move the cursor, change colours or turn the order of letters round stands as
// U+FFFD. Line ends and tabs stay.
func shown(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r)) {
			return unicode.ReplacementChar
		}
		return r
	}, text)
}

// shownLine is shown on one line.
func shownLine(text string) string {
	return strings.NewReplacer("\n", "\ufffd", "\t", "\ufffd").Replace(shown(text))
}
