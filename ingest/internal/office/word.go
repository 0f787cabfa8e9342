package office

import (
	"fmt"
	"strconv"
	"strings"
)

// word reads word/document.xml (ECMA-376 part 1, WordprocessingML): paragraphs,
// headings by the outline level of their style, lists, tables, text boxes and
// footnotes, in reading order. Deleted text of tracked changes is left out;
// headers and footers repeat on every page and are left out too.
func word(a *archive) (Document, error) {
	root, err := a.must("word/document.xml")
	if err != nil {
		return Document{}, err
	}
	styles, err := a.part("word/styles.xml")
	if err != nil {
		return Document{}, err
	}
	w := &wordReader{out: builder{meter: &a.text}, levels: outlineLevels(styles), lists: listStyles(styles)}
	for _, name := range []string{"footnotes", "endnotes"} {
		n, err := a.part("word/" + name + ".xml")
		if err != nil {
			return Document{}, err
		}
		w.notes = append(w.notes, notesOf(n)...)
	}
	w.blocks(root.child("document").child("body"))
	for _, n := range w.notes {
		if text := squeeze(w.inline(n)); text != "" {
			w.out.paragraph(text)
		}
	}
	return w.out.document(), nil
}

type wordReader struct {
	out    builder
	levels map[string]int  // heading level by style, from 1
	lists  map[string]bool // styles of list items
	boxes  []*node         // text boxes met in the paragraph at hand
	notes  []*node
}

// outlineLevels maps style ids to heading levels, through the styles they are
// based on.
func outlineLevels(styles *node) map[string]int {
	levels, based := map[string]int{}, map[string]string{}
	if styles == nil {
		return levels
	}
	for _, s := range styles.child("styles").children {
		if s.name != "style" {
			continue
		}
		id := s.attr("styleId")
		based[id] = s.child("basedOn").attr("val")
		name := strings.ToLower(s.child("name").attr("val"))
		if l, ok := outline(s.child("pPr")); ok {
			levels[id] = l
		} else if n, ok := strings.CutPrefix(name, "heading "); ok {
			levels[id], _ = strconv.Atoi(n)
		} else if name == "title" {
			levels[id] = 1
		}
	}
	for id := range based {
		for at, hops := id, 0; at != "" && hops < 16 && levels[id] == 0; at, hops = based[at], hops+1 {
			levels[id] = levels[at]
		}
	}
	return levels
}

// listStyles are the styles that make a paragraph an item of a list.
func listStyles(styles *node) map[string]bool {
	lists := map[string]bool{}
	if styles == nil {
		return lists
	}
	for _, s := range styles.child("styles").children {
		if s.name == "style" && s.child("pPr").child("numPr").name != "" {
			lists[s.attr("styleId")] = true
		}
	}
	return lists
}

// outline is the level that a paragraph's properties set: w:outlineLvl counts
// from 0, 9 means body text.
func outline(properties *node) (int, bool) {
	v := properties.child("outlineLvl").attr("val")
	n, err := strconv.Atoi(v)
	return n + 1, err == nil && n >= 0 && n < 9
}

// blocks writes what stands in a body, a cell or a text box.
func (w *wordReader) blocks(n *node) {
	for _, c := range n.children {
		switch c.name {
		case "p":
			w.paragraph(c)
		case "tbl":
			w.out.table(w.rows(c))
		case "AlternateContent":
			w.blocks(alternative(c))
		case "del", "moveFrom", "sectPr":
		default:
			w.blocks(c)
		}
	}
}

func (w *wordReader) paragraph(p *node) {
	text := w.inline(p)
	properties := p.child("pPr")
	level, ok := outline(properties)
	if style := properties.child("pStyle").attr("val"); !ok {
		level = w.levels[style]
		if n, found := strings.CutPrefix(strings.ToLower(style), "heading"); found && level == 0 {
			level, _ = strconv.Atoi(n)
		}
	}
	switch depth, item := w.listItem(properties); {
	case level > 0:
		w.out.heading(level, text)
	case item:
		w.out.item(depth, text)
	default:
		w.out.paragraph(text)
	}
	boxes := w.boxes
	w.boxes = nil
	for _, b := range boxes {
		w.blocks(b)
	}
}

// listItem reports whether a paragraph is an item of a list and how deep; its own
// numbering 0 takes it out of its style's list.
func (w *wordReader) listItem(properties *node) (depth int, ok bool) {
	list := properties.child("numPr")
	if list.name == "" {
		return 0, w.lists[properties.child("pStyle").attr("val")]
	}
	depth, _ = strconv.Atoi(list.child("ilvl").attr("val"))
	return depth, list.child("numId").attr("val") != "0"
}

// inline is the text of a paragraph. Text boxes inside are kept for after it.
func (w *wordReader) inline(n *node) string {
	var b strings.Builder
	w.runs(&b, n)
	return b.String()
}

func (w *wordReader) runs(b *strings.Builder, n *node) {
	for _, c := range n.children {
		switch c.name {
		case "t":
			b.WriteString(c.text())
		case "tab", "ptab":
			b.WriteByte(' ')
		case "br", "cr":
			b.WriteByte('\n')
		case "noBreakHyphen":
			b.WriteByte('-')
		case "footnoteReference", "endnoteReference":
			fmt.Fprintf(b, " [%s]", c.attr("id"))
		case "txbxContent":
			w.boxes = append(w.boxes, c)
		case "AlternateContent":
			w.runs(b, alternative(c))
		case "", "pPr", "rPr", "del", "moveFrom", "instrText", "delText", "rt":
		default:
			w.runs(b, c)
		}
	}
}

// alternative is the branch to read of content that is stored twice: once for
// new programs, once for old ones.
func alternative(n *node) *node {
	if c := n.child("Choice"); c.name != "" {
		return c
	}
	return n.child("Fallback")
}

// rows are the cells of a table. A cell over several columns is followed by
// empty ones; one that goes on from the row above repeats its text, so that each
// row can be read alone.
func (w *wordReader) rows(table *node) [][]string {
	var rows [][]string
	for r := range elements(table, "tr") {
		var row []string
		for c := range elements(r, "tc") {
			properties := c.child("tcPr")
			text := w.cell(c)
			if m := properties.child("vMerge"); m.name != "" && m.attr("val") != "restart" && len(rows) > 0 {
				if above := rows[len(rows)-1]; len(row) < len(above) {
					text = above[len(row)]
				}
			}
			row = append(row, text)
			span, _ := strconv.Atoi(properties.child("gridSpan").attr("val"))
			if !w.out.meter.take(len(text) + min(max(span, 1), maxSpan)) {
				return nil
			}
			for i := 1; i < min(span, maxSpan); i++ {
				row = append(row, "")
			}
		}
		rows = append(rows, row)
	}
	return rows
}

// maxSpan bounds the columns that one cell may take.
const maxSpan = 64

// cell is the text of a cell on one line; tables inside are flattened.
func (w *wordReader) cell(c *node) string {
	inner := &wordReader{out: builder{meter: w.out.meter}, levels: map[string]int{}}
	for _, n := range c.children {
		if n.name == "tbl" {
			for _, row := range inner.rows(n) {
				inner.out.paragraph(strings.Join(row, " "))
			}
			continue
		}
		inner.blocks(&node{children: []*node{n}})
	}
	return squeeze(inner.out.document().Markdown)
}

// notesOf returns the notes of a part without the separators that it also holds.
func notesOf(part *node) []*node {
	var out []*node
	if part == nil {
		return nil
	}
	for n := range part.all() {
		if (n.name == "footnote" || n.name == "endnote") && n.attr("type") == "" {
			id := &node{name: "t", children: []*node{{data: "[" + n.attr("id") + "] "}}}
			out = append(out, &node{children: []*node{id, n}})
		}
	}
	return out
}
