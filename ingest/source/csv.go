package source

import (
	"encoding/csv"
	"strings"
	"unicode/utf8"

	"ragd/ingest"
)

// csvColumns bounds the columns of a table; a wider file is kept as plain text.
const csvColumns = 64

// extractCSV turns a table into a Markdown table, so that rows keep their
// header when the table is cut. A file that is not a regular table (rows of
// different lengths, one column, broken quotes) stays plain text.
func extractCSV(d *ingest.Document) error {
	rows, ok := readTable(d.Text)
	if !ok {
		d.Type = plainFormat.media
		return nil
	}
	var b strings.Builder
	b.Grow(len(d.Text) + len(d.Text)/4)
	for i, row := range rows {
		writeRow(&b, row)
		if i == 0 {
			b.WriteString("|" + strings.Repeat(" --- |", len(row)) + "\n")
		}
	}
	d.Text, d.Markdown = b.String(), true
	return nil
}

func readTable(text string) ([][]string, bool) {
	r := csv.NewReader(strings.NewReader(text))
	r.Comma = separator(text)
	r.ReuseRecord = false
	rows, err := r.ReadAll()
	if err != nil || len(rows) < 2 || len(rows[0]) < 2 || len(rows[0]) > csvColumns {
		return nil, false
	}
	return rows, true
}

// separator is the sign that stands most often in the first record outside quotes.
func separator(text string) rune {
	counts := map[rune]int{}
	quoted := false
	for _, r := range text {
		switch r {
		case '"':
			quoted = !quoted
		case ',', ';', '\t', '|':
			if !quoted {
				counts[r]++
			}
		}
		if r == '\n' && !quoted || counts[r] > csvColumns {
			break
		}
	}
	best := ','
	for _, r := range ";\t|" {
		if counts[r] > counts[best] {
			best = r
		}
	}
	return best
}

func writeRow(b *strings.Builder, row []string) {
	b.WriteByte('|')
	for _, cell := range row {
		b.WriteByte(' ')
		b.WriteString(cellText(cell))
		b.WriteString(" |")
	}
	b.WriteByte('\n')
}

// cellText puts a cell on one line; line breaks inside become spaces.
func cellText(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\ufffd")
	}
	return strings.ReplaceAll(strings.Join(strings.Fields(s), " "), "|", "\\|")
}
