package source

import (
	"encoding/csv"
	"strings"

	"ragd/ingest"
	"ragd/ingest/internal/markdown"
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
	markdown.WriteTable(&b, rows)
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
