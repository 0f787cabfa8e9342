package markdown

import (
	"strings"
	"unicode/utf8"
)

// WriteTable appends a pipe table whose first row is the header. Rows may be of
// different lengths: the header is made as long as the longest, since a row beyond
// it would be cut by readers, and the others stay as they are, those without a cell
// left out. So the table is about as long as its cells. Cells are put on one line each.
func WriteTable(b *strings.Builder, rows [][]string) {
	width := 0
	for _, row := range rows {
		width = max(width, len(row))
	}
	for i, row := range rows {
		if i > 0 && len(row) == 0 {
			continue
		}
		b.WriteByte('|')
		for _, c := range row {
			b.WriteByte(' ')
			b.WriteString(cell(c))
			b.WriteString(" |")
		}
		if i == 0 {
			b.WriteString(strings.Repeat("  |", width-len(row)))
			b.WriteString("\n|" + strings.Repeat(" --- |", width))
		}
		b.WriteByte('\n')
	}
}

// cell puts text on one line; line breaks inside become spaces.
func cell(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\ufffd")
	}
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", "\\|")
}
