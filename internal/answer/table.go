package answer

import "strings"

// tableRow is the row of a table that shares most with the question, when a
// sentence is one or several rows of a Markdown table; else the sentence itself.
// Rows are compared by pairs of characters, which serves words with and without
// endings.
func tableRow(text, question string) string {
	rows := bodyRows(text)
	if len(rows) == 0 {
		return text
	}
	asked := pairs(question)
	best, most := rows[0], -1
	for _, row := range rows {
		shared := 0
		for p := range pairs(row) {
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

// pairs is the set of neighbouring characters inside the words of a text.
func pairs(text string) map[[2]rune]bool {
	set := map[[2]rune]bool{}
	for _, word := range strings.Fields(strings.ToLower(text)) {
		runes := []rune(strings.Trim(word, "|,.?!()"))
		for i := 1; i < len(runes); i++ {
			set[[2]rune{runes[i-1], runes[i]}] = true
		}
	}
	return set
}
