package answer

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// tableRow is the row of a table that shares most with the question, when a
// sentence is one or several rows of a Markdown table, "" when none shares anything;
// else the sentence itself. Rows are compared by parts of words, which serves
// words with and without endings.
func tableRow(text, question string) string {
	rows := bodyRows(text)
	if len(rows) == 0 {
		return text
	}
	asked := parts(question)
	best, most := "", 0
	for _, row := range rows {
		shared := 0
		for p := range parts(row) {
			if asked[p] {
				shared++
			}
		}
		if shared > most {
			best, most = row, shared
		}
	}
	return best
}

// bodyRows are the lines of a table without its head and rule; nil when text is
// no table.
func bodyRows(text string) []string {
	var rows []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			return nil
		case strings.Trim(line, "|-: ") == "": // the rule: what stood before is the head
			rows = rows[:0]
		default:
			rows = append(rows, line)
		}
	}
	return rows
}

// parts is the set of what the words of a text are compared by: runs of three
// characters, of two in words with letters beyond ASCII, where a character says more.
// A shorter word counts whole. The name in "AB-9는" also counts without its particle.
// All are in the form NFKC, so that wide letters and spelt syllables are the ones that
// people type.
func parts(text string) map[string]bool {
	set := map[string]bool{}
	add := func(word string, n int) {
		runes := []rune(word)
		for i := 0; i+n <= len(runes); i++ {
			set[string(runes[i:i+n])] = true
		}
		if len(runes) < n && word != "" {
			set[word] = true
		}
	}
	foreign := func(r rune) bool { return r >= utf8.RuneSelf }
	for _, word := range strings.Fields(strings.ToLower(norm.NFKC.String(text))) {
		word = strings.Trim(word, "|,.?!()")
		if !strings.ContainsFunc(word, foreign) {
			add(word, 3)
			continue
		}
		add(word, 2)
		for _, name := range strings.FieldsFunc(word, foreign) {
			if len(name) > 1 {
				add(name, 3)
			}
		}
	}
	return set
}
