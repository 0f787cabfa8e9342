package markdown

import (
	"strings"
	"unicode/utf8"
)

// WriteTable appends a pipe table whose first row is the header. Rows may be of
// different lengths; cells are put on one line each.
func WriteTable(b *strings.Builder, rows [][]string) {
	width := 0
	for _, row := range rows {
		width = max(width, len(row))
	}
	for i, row := range rows {
		b.WriteByte('|')
		for c := range width {
			b.WriteByte(' ')
			if c < len(row) {
				b.WriteString(cell(row[c]))
			}
			b.WriteString(" |")
		}
		b.WriteByte('\n')
		if i == 0 {
			b.WriteString("|" + strings.Repeat(" --- |", width) + "\n")
		}
	}
}

// cell puts text on one line; line breaks inside become spaces.
func cell(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\ufffd")
	}
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", "\\|")
}
