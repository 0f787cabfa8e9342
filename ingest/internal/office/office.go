// Package office reads the text of office documents as Markdown: Word (docx),
// PowerPoint (pptx), Excel (xlsx) and Hangul (hwpx) files. All of them are zip
// archives of XML parts.
package office

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
)

// Errors of one file.
var (
	// ErrBroken: a part is missing or cannot be read.
	ErrBroken = errors.New("the office document is damaged")
	// ErrTooLarge: unpacked, the document exceeds Limits.
	ErrTooLarge = errors.New("the office document is too large")
)

// Limits bounds one document.
type Limits struct {
	// Bytes is the most that its parts may hold unpacked, and the most that its text
	// may be; Nodes the most elements and texts of a part; Rows and Cells bound a sheet.
	Bytes       int64
	Nodes       int
	Rows, Cells int
}

// DefaultLimits takes any document that people wrote.
func DefaultLimits() Limits {
	return Limits{Bytes: 128 << 20, Nodes: 4_000_000, Rows: 200_000, Cells: 2_000_000}
}

// Document is what a file says.
type Document struct {
	Title, Author string
	Markdown      string
	// Pages is the byte offset at which each slide or sheet starts; nil for
	// documents that flow.
	Pages []int
}

// Kind is a format; its values are the media types.
type Kind string

// The formats that are read.
const (
	Word       Kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	PowerPoint Kind = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
	Excel      Kind = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	Hangul     Kind = "application/hwp+zip"
)

// Detect tells the format by the parts that a zip archive holds, "" for others.
func Detect(data []byte) Kind {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return ""
	}
	for _, f := range z.File {
		switch f.Name {
		case "word/document.xml":
			return Word
		case "ppt/presentation.xml":
			return PowerPoint
		case "xl/workbook.xml":
			return Excel
		case "Contents/section0.xml":
			return Hangul
		}
	}
	return ""
}

// Read returns the text of a document of a kind that Detect found.
func Read(data []byte, kind Kind, limits Limits) (Document, error) {
	switch kind {
	case Word:
		return readWith(data, limits, word)
	case PowerPoint:
		return readWith(data, limits, slides)
	case Hangul:
		return readWith(data, limits, hangul)
	case Excel:
		return sheets(data, limits)
	}
	return Document{}, fmt.Errorf("%w: unknown kind %q", ErrBroken, kind)
}

func readWith(data []byte, limits Limits, read func(*archive) (Document, error)) (Document, error) {
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return Document{}, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	a := &archive{files: map[string]*zip.File{}, left: limits.Bytes, nodes: limits.Nodes, text: meter{limits.Bytes}}
	for _, f := range z.File {
		a.files[strings.TrimPrefix(f.Name, "/")] = f
	}
	d, err := read(a)
	if err == nil {
		err = a.text.check(limits.Bytes)
	}
	if err != nil {
		return Document{}, err
	}
	a.properties(&d)
	return d, nil
}

// archive gives the parts of a document, within what may still be unpacked.
type archive struct {
	files map[string]*zip.File
	left  int64
	nodes int
	text  meter
}

// part returns the root of a part. A missing one is nil.
func (a *archive) part(name string) (*node, error) {
	f := a.files[name]
	if f == nil {
		return nil, nil
	}
	r, err := f.Open()
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrBroken, name, err)
	}
	defer r.Close()
	limited := &io.LimitedReader{R: r, N: a.left + 1}
	n, err := parse(limited, a.nodes)
	a.left = limited.N - 1
	if a.left < 0 {
		return nil, fmt.Errorf("%w: %s", ErrTooLarge, name)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

// must is part for one that the format cannot do without.
func (a *archive) must(name string) (*node, error) {
	n, err := a.part(name)
	if err == nil && n == nil {
		err = fmt.Errorf("%w: %s is missing", ErrBroken, name)
	}
	return n, err
}

// properties fills title and author from the document's own description.
func (a *archive) properties(d *Document) {
	n, err := a.part("docProps/core.xml")
	if err != nil || n == nil {
		return
	}
	for c := range n.all() {
		switch c.name {
		case "title":
			d.Title = squeeze(c.text())
		case "creator":
			d.Author = squeeze(c.text())
		}
	}
}

// relations maps the ids that a part uses to the parts they stand for.
func (a *archive) relations(name string) (map[string]string, error) {
	n, err := a.part(path.Join(path.Dir(name), "_rels", path.Base(name)+".rels"))
	out := map[string]string{}
	if err != nil || n == nil {
		return out, err
	}
	for _, c := range n.child("Relationships").children {
		if c.name != "Relationship" || c.attr("TargetMode") == "External" {
			continue
		}
		target := c.attr("Target")
		if strings.HasPrefix(target, "/") {
			out[c.attr("Id")] = strings.TrimPrefix(target, "/")
		} else {
			out[c.attr("Id")] = path.Join(path.Dir(name), target)
		}
	}
	return out, nil
}
