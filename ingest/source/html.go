package source

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"ragd/ingest"
)

// extractHTML turns a page into Markdown. Scripts, styles, comments and what
// never shows (templates, hidden elements) are dropped.
func extractHTML(d *ingest.Document) error {
	doc, err := html.Parse(strings.NewReader(d.Text))
	if err != nil {
		return fmt.Errorf("html: %w", err)
	}
	title := pageTitle(doc)
	prune(doc, 0)
	out, err := newConverter().ConvertNode(doc)
	if err != nil {
		return fmt.Errorf("html: %w", err)
	}
	text := strings.ReplaceAll(strings.ToValidUTF8(string(out), "\ufffd"), "\x00", " ")
	d.Markdown = true
	d.Text = escapedUnderscore.ReplaceAllString(text, "${1}_")
	d.Title = title
	if d.Title == "" {
		d.Title = firstHeading(d.Text)
	}
	return nil
}

// newConverter spends no characters on aligned columns; a first row without
// header cells becomes the header, as a Markdown table needs one.
func newConverter() *converter.Converter {
	return converter.NewConverter(converter.WithPlugins(
		base.NewBasePlugin(),
		commonmark.NewCommonmarkPlugin(),
		table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal), table.WithHeaderPromotion(true)),
	))
}

// escapedUnderscore is an underscore inside a word, which needs no backslash in
// Markdown: names such as OTEL_TRACES stay as they are searched for.
var escapedUnderscore = regexp.MustCompile(`([\p{L}\p{N}_])\\_`)

// pageTitle is the text of <title>.
func pageTitle(n *html.Node) string {
	for n := range n.Descendants() {
		if n.DataAtom != atom.Title || n.FirstChild == nil || n.Namespace != "" {
			continue
		}
		return strings.Join(strings.Fields(n.FirstChild.Data), " ")
	}
	return ""
}

// Bounds of what a page may ask for: deeper quotes and lists are flattened and
// larger spans dropped, since each level and each spanned cell is written out.
const (
	maxNesting = 12
	maxSpan    = 20
)

// prune removes comments and elements that are not part of the visible text,
// and tames the rest. depth counts the quotes and lists around n.
func prune(n *html.Node, depth int) {
	if n.DataAtom == atom.Blockquote || n.DataAtom == atom.Ul || n.DataAtom == atom.Ol {
		if depth++; depth > maxNesting {
			n.DataAtom, n.Data = atom.Div, "div"
		}
	}
	if n.DataAtom == atom.Table && sparse(n) {
		flatten(n)
	}
	n.Attr = slices.DeleteFunc(n.Attr, wideSpan)
	for c := n.FirstChild; c != nil; {
		next := c.NextSibling
		if unseen(c) {
			n.RemoveChild(c)
		} else {
			prune(c, depth)
		}
		c = next
	}
}

// sparse reports a table of which hardly a cell is there: each row is written as wide
// as the widest.
func sparse(table *html.Node) bool {
	rows, widest, cells := 0, 0, 0
	for n := range table.Descendants() {
		if n.DataAtom != atom.Tr {
			continue
		}
		width := 0
		for c := range n.ChildNodes() {
			if c.DataAtom == atom.Td || c.DataAtom == atom.Th {
				width++
			}
		}
		rows, widest, cells = rows+1, max(widest, width), cells+width
	}
	return rows*widest > maxSparse*cells+maxSparseCells
}

// A table may have so many times the cells that are there, and so many more.
const (
	maxSparse      = 8
	maxSparseCells = 4096
)

// flatten makes blocks of the parts of a table.
func flatten(table *html.Node) {
	div := func(n *html.Node) { n.DataAtom, n.Data = atom.Div, "div" }
	div(table)
	for n := range table.Descendants() {
		switch n.DataAtom {
		case atom.Table, atom.Thead, atom.Tbody, atom.Tfoot, atom.Tr, atom.Td, atom.Th, atom.Caption:
			div(n)
		}
	}
}

func wideSpan(a html.Attribute) bool {
	if a.Key != "colspan" && a.Key != "rowspan" {
		return false
	}
	span, err := strconv.Atoi(a.Val)
	return err != nil || span > maxSpan
}

func unseen(n *html.Node) bool {
	if n.Type == html.CommentNode {
		return true
	}
	switch n.DataAtom {
	case atom.Head, atom.Script, atom.Style, atom.Noscript, atom.Template, atom.Svg, atom.Iframe, atom.Object, atom.Canvas:
		return true
	}
	for _, a := range n.Attr {
		if a.Key == "hidden" {
			return true
		}
	}
	return false
}
