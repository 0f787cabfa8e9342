package office

import (
	"fmt"
	"strings"

	"ragd/ingest/internal/markdown"
)

// meter is how much text a document may still become. Cells are repeated in the rows
// that they span, so a small file can ask for far more than it holds.
type meter struct{ left int64 }

// take accounts for n bytes and reports whether they are within the bound.
func (m *meter) take(n int) bool {
	m.left -= int64(n)
	return m.left >= 0
}

// check is the error of a document that wanted more than its bound.
func (m *meter) check(bound int64) error {
	if m.left < 0 {
		return fmt.Errorf("%w: its text is more than %d bytes", ErrTooLarge, bound)
	}
	return nil
}

// builder collects blocks of Markdown, as long as the meter allows.
type builder struct {
	meter *meter
	b     strings.Builder
	pages []int
	list  bool // the last block is a list item
}

// paragraph appends text; its lines stay lines.
func (w *builder) paragraph(text string) {
	var lines []string
	for line := range strings.Lines(text) {
		if line = squeeze(line); line == "" {
			continue
		}
		lines = append(lines, markdown.EscapeBlock(line))
	}
	w.block(strings.Join(lines, "\n"), false)
}

// heading appends a heading of a level from 1.
func (w *builder) heading(level int, text string) {
	if text = squeeze(text); text != "" {
		w.block(strings.Repeat("#", min(max(level, 1), 6))+" "+text, false)
	}
}

// item appends a list item, indented by depth.
func (w *builder) item(depth int, text string) {
	if text = squeeze(text); text != "" {
		w.block(strings.Repeat("  ", min(max(depth, 0), 8))+"- "+text, true)
	}
}

// table appends rows; one column or one row is no table but paragraphs.
func (w *builder) table(rows [][]string) {
	width := 0
	for _, r := range rows {
		width = max(width, len(r))
	}
	if len(rows) < 2 || width < 2 {
		for _, r := range rows {
			for _, c := range r {
				w.paragraph(c)
			}
		}
		return
	}
	var b strings.Builder
	markdown.WriteTable(&b, rows)
	w.block(strings.TrimSuffix(b.String(), "\n"), false)
}

func (w *builder) block(text string, item bool) {
	if text == "" || !w.meter.take(len(text)) {
		return
	}
	if w.b.Len() > 0 {
		w.b.WriteString("\n")
		if !item || !w.list {
			w.b.WriteString("\n")
		}
	}
	w.b.WriteString(text)
	w.list = item
}

// page marks the start of a slide or sheet.
func (w *builder) page() {
	at := w.b.Len()
	if at > 0 {
		at += len("\n\n")
	}
	w.pages = append(w.pages, at)
	w.list = false
}

// document ends the text. A last page without a block starts at the end.
func (w *builder) document() Document {
	text := w.b.String()
	for i := range w.pages {
		w.pages[i] = min(w.pages[i], len(text))
	}
	return Document{Markdown: text, Pages: w.pages}
}
