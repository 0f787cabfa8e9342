package office

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// hangul reads a Hangul document in its XML form (KS X 6101, OWPML): paragraphs,
// headings by the outline styles, tables, text boxes and notes.
func hangul(a *archive) (Document, error) {
	header, err := a.part("Contents/header.xml")
	if err != nil {
		return Document{}, err
	}
	h := &hangulReader{out: builder{meter: &a.text}, levels: hangulLevels(header)}
	for i := 0; a.files[sectionName(i)] != nil; i++ {
		section, err := a.must(sectionName(i))
		if err != nil {
			return Document{}, err
		}
		for _, n := range section.children {
			h.blocks(n)
		}
	}
	d := h.out.document()
	d.Title = h.title(a)
	return d, nil
}

func sectionName(i int) string { return fmt.Sprintf("Contents/section%d.xml", i) }

type hangulReader struct {
	out    builder
	levels map[string]int // heading level by style id
}

// outlineStyle is the name of a heading's style: 개요 1 or Outline 1.
var outlineStyle = regexp.MustCompile(`^(?:개요|[Oo]utline) ?(\d{1,2})$`)

func hangulLevels(header *node) map[string]int {
	levels := map[string]int{}
	if header == nil {
		return levels
	}
	for n := range header.all() {
		if n.name != "style" {
			continue
		}
		for _, name := range []string{n.attr("name"), n.attr("engName")} {
			if m := outlineStyle.FindStringSubmatch(name); m != nil {
				levels[n.attr("id")], _ = strconv.Atoi(m[1])
			}
		}
	}
	return levels
}

// blocks writes the paragraphs below n.
func (h *hangulReader) blocks(n *node) {
	for _, c := range n.children {
		if c.name == "p" {
			h.paragraph(c)
		} else {
			h.blocks(c)
		}
	}
}

// paragraph writes its own text, then the tables, text boxes and notes that are
// anchored in it.
func (h *hangulReader) paragraph(p *node) {
	var b strings.Builder
	var anchored []*node
	for run := range elements(p, "run") {
		for _, c := range run.children {
			switch c.name {
			case "t":
				hangulText(&b, c)
			case "secPr", "":
			default:
				anchored = append(anchored, c)
			}
		}
	}
	if level := h.levels[p.attr("styleIDRef")]; level > 0 {
		h.out.heading(level, b.String())
	} else {
		h.out.paragraph(b.String())
	}
	for _, c := range anchored {
		h.object(c)
	}
}

// object writes what hangs on a paragraph.
func (h *hangulReader) object(n *node) {
	switch n.name {
	case "tbl":
		h.out.table(h.rows(n))
	case "ctrl": // running heads, page numbers, fields; notes are text
		for _, c := range n.children {
			if c.name == "footNote" || c.name == "endNote" {
				h.blocks(c)
			}
		}
	default:
		h.blocks(n)
	}
}

// hangulText joins texts with the signs that stand between them as elements.
func hangulText(b *strings.Builder, n *node) {
	for _, c := range n.children {
		switch c.name {
		case "":
			b.WriteString(c.data)
		case "lineBreak":
			b.WriteByte('\n')
		case "tab", "fwSpace", "nbSpace":
			b.WriteByte(' ')
		case "hyphen":
			b.WriteByte('-')
		case "deleteBegin", "deleteEnd", "titleMark":
		default:
			hangulText(b, c)
		}
	}
}

// rows puts the cells at the addresses they carry; a cell over several rows is
// repeated in each, so that each row can be read alone. A cell whose address cannot
// be stands at the end of the row that it is written in.
func (h *hangulReader) rows(table *node) [][]string {
	rows := make([][]string, count(elements(table, "tr")))
	written := 0
	for r := range elements(table, "tr") {
		for c := range elements(r, "tc") {
			at, span := c.child("cellAddr"), c.child("cellSpan")
			row, rowErr := strconv.Atoi(at.attr("rowAddr"))
			column, columnErr := strconv.Atoi(at.attr("colAddr"))
			if rowErr != nil || columnErr != nil || row < 0 || row >= len(rows) || column < 0 || column > maxSpan {
				row, column = written, len(rows[written])
			}
			down, _ := strconv.Atoi(span.attr("rowSpan"))
			text := h.cell(c)
			for i := row; i < min(row+max(down, 1), len(rows)); i++ {
				if !h.out.meter.take(len(text) + column) {
					return nil
				}
				rows[i] = place(rows[i], column, text)
			}
		}
		written++
	}
	return rows
}

// cell is the text of a cell on one line.
func (h *hangulReader) cell(c *node) string {
	inner := &hangulReader{out: builder{meter: h.out.meter}, levels: map[string]int{}}
	inner.blocks(c)
	return squeeze(inner.out.document().Markdown)
}

func place(row []string, column int, text string) []string {
	for len(row) <= column {
		row = append(row, "")
	}
	row[column] = text
	return row
}

// title is the title in the package's description (Contents/content.hpf).
func (h *hangulReader) title(a *archive) string {
	n, err := a.part("Contents/content.hpf")
	if err != nil || n == nil {
		return ""
	}
	for c := range n.all() {
		if c.name == "title" {
			return squeeze(c.text())
		}
	}
	return ""
}
