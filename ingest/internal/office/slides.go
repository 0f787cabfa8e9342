package office

import (
	"fmt"
	"strings"
)

// slides reads a presentation (ECMA-376 part 1, PresentationML): every slide's
// title as a heading, its texts, tables and speaker notes. A slide is a page.
func slides(a *archive) (Document, error) {
	const main = "ppt/presentation.xml"
	root, err := a.must(main)
	if err != nil {
		return Document{}, err
	}
	parts, err := a.relations(main)
	if err != nil {
		return Document{}, err
	}
	w := builder{meter: &a.text}
	for id := range elements(root.child("presentation").child("sldIdLst"), "sldId") {
		name := parts[relationID(id)]
		slide, err := a.must(name)
		if err != nil {
			return Document{}, err
		}
		w.page()
		shapes(&w, slide)
		if err := notes(a, &w, name); err != nil {
			return Document{}, err
		}
	}
	return w.document(), nil
}

// relationID is r:id, beside which an element may have an id of its own.
func relationID(n *node) string {
	for _, a := range n.attrs {
		if a.Name.Local == "id" && strings.Contains(a.Name.Space, "relationships") {
			return a.Value
		}
	}
	return ""
}

// shapes writes the title first, wherever it stands in the file.
func shapes(w *builder, slide *node) {
	var rest []*node
	for n := range slide.all() {
		switch {
		case n.name == "sp" && isTitle(n):
			w.heading(2, strings.Join(paragraphs(n), " "))
		case n.name == "sp" || n.name == "tbl":
			rest = append(rest, n)
		}
	}
	for _, n := range rest {
		if n.name == "tbl" {
			w.table(drawingRows(n))
			continue
		}
		if kind := placeholder(n); kind == "sldNum" || kind == "dt" || kind == "ftr" {
			continue
		}
		for _, p := range paragraphs(n) {
			w.paragraph(p)
		}
	}
}

// placeholder is the role of a shape, "" for an ordinary one.
func placeholder(shape *node) string {
	for n := range shape.all() {
		if n.name == "ph" {
			return n.attr("type")
		}
	}
	return ""
}

func isTitle(shape *node) bool {
	kind := placeholder(shape)
	return kind == "title" || kind == "ctrTitle"
}

// paragraphs are the texts of a shape or a cell (DrawingML a:p).
func paragraphs(n *node) []string {
	var out []string
	for p := range n.all() {
		if p.name != "p" {
			continue
		}
		var b strings.Builder
		for r := range p.all() {
			switch r.name {
			case "t":
				b.WriteString(r.text())
			case "br":
				b.WriteByte('\n')
			}
		}
		if text := b.String(); strings.TrimSpace(text) != "" {
			out = append(out, text)
		}
	}
	return out
}

func drawingRows(table *node) [][]string {
	var rows [][]string
	for r := range elements(table, "tr") {
		var row []string
		for c := range elements(r, "tc") {
			row = append(row, squeeze(strings.Join(paragraphs(c), " ")))
		}
		rows = append(rows, row)
	}
	return rows
}

// notes writes the speaker notes of a slide.
func notes(a *archive, w *builder, slide string) error {
	parts, err := a.relations(slide)
	if err != nil {
		return err
	}
	for _, name := range parts {
		if !strings.Contains(name, "notesSlides/") {
			continue
		}
		n, err := a.must(name)
		if err != nil {
			return fmt.Errorf("notes of %s: %w", slide, err)
		}
		for shape := range n.all() {
			if shape.name == "sp" && placeholder(shape) == "body" {
				for _, p := range paragraphs(shape) {
					w.paragraph(p)
				}
			}
		}
	}
	return nil
}
