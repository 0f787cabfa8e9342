// Package markdown finds the block structure of a Markdown text: where its
// headings, paragraphs, list items, tables and code fences begin and end. The
// text itself is left as it is; goldmark supplies the structure (CommonMark
// 0.31 blocks and GitHub tables), and no inline markup is parsed.
package markdown

import (
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	east "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// Kind is what a block is.
type Kind uint8

// The kinds a chunker tells apart.
const (
	Paragraph Kind = iota // also quotes, rules and HTML blocks
	Heading
	Item // one item of a list, its nested lists included
	Table
	Fence // a fenced code block
)

// Block is a top-level block. Blocks tile the text: each runs up to the start
// of the next, so blank lines belong to the block before them.
type Block struct {
	Kind       Kind
	Start, End int
	// Level (1–6) and Title are those of a heading; Title has no markup.
	Level int
	Title string
	// Parts are the blocks inside a list item or a quote, nested ones flattened;
	// they tile it.
	Parts []Block
}

// Blocks returns the blocks of src in order. They cover it from the first
// block to the end; a text without any block gives none. A text with quotes or
// lists nested beyond reason is one paragraph: the parser's time grows with the
// square of the depth.
func Blocks(src string) []Block {
	if tooDeep(src) {
		return []Block{{Kind: Paragraph, End: len(src)}}
	}
	b := []byte(src)
	doc := newParser().Parse(text.NewReader(b))
	var out []Block
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		out = appendNode(out, n, b)
	}
	return tile(out, src, len(src))
}

// newParser parses blocks only: without inline parsers and link definitions
// (which stay paragraphs) the cost is linear and text is never rewritten.
func newParser() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithParagraphTransformers(util.Prioritized(newTableHeads(), 200)),
	)
}

// Bounds of nesting: marks of quotes and lists at the start of a line, and
// their indentation.
const (
	maxMarks  = 60
	maxIndent = 200
)

func tooDeep(src string) bool {
	for line := range strings.Lines(src) {
		if marks, indent := containers(line); (marks > maxMarks || indent > maxIndent) && strings.Trim(line, "-*+ \t\n") != "" {
			return true
		}
	}
	return false
}

// containers counts the marks that open quotes and list items at the start of
// a line, and the blanks before the last of them.
func containers(line string) (marks, indent int) {
	blanks := 0
	for i := 0; i+1 < len(line); i++ {
		blank := line[i+1] == ' ' || line[i+1] == '\t'
		switch c := line[i]; {
		case c == ' ' || c == '\t':
			blanks++
		case c == '>', blank && strings.IndexByte("-+*", c) >= 0, blank && i > 0 && (c == '.' || c == ')') && digit(line[i-1]):
			marks++
			indent = blanks
		case !digit(c):
			return marks, indent
		}
	}
	return marks, indent
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func appendNode(out []Block, n ast.Node, src []byte) []Block {
	switch n := n.(type) {
	case *ast.Heading:
		return append(out, Block{Kind: Heading, Start: n.Pos(), Level: n.Level, Title: title(n, src)})
	case *ast.FencedCodeBlock:
		return append(out, Block{Kind: Fence, Start: n.Pos()})
	case *east.Table:
		return append(out, Block{Kind: Table, Start: n.Pos()})
	case *ast.List:
		for item := n.FirstChild(); item != nil; item = item.NextSibling() {
			out = append(out, Block{Kind: Item, Start: item.Pos(), Parts: inside(item, src)})
		}
		return out
	case *ast.Blockquote:
		return append(out, Block{Kind: Paragraph, Start: n.Pos(), Parts: inside(n, src)})
	}
	return append(out, Block{Kind: Paragraph, Start: n.Pos()})
}

// inside lists the blocks of a container; a heading in there is a paragraph.
func inside(n ast.Node, src []byte) []Block {
	var out []Block
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		for _, b := range appendNode(nil, c, src) {
			if len(b.Parts) > 0 {
				out = append(out, b.Parts...)
				continue
			}
			if b.Kind == Heading {
				b = Block{Kind: Paragraph, Start: b.Start}
			}
			out = append(out, b)
		}
	}
	return out
}

// tile moves each start to the beginning of its line and ends each block where
// the next one starts. A node whose place is unknown or out of order joins the
// block before it.
func tile(blocks []Block, src string, end int) []Block {
	out := blocks[:0]
	for _, b := range blocks {
		if b.Start < 0 || b.Start > len(src) {
			continue
		}
		b.Start = strings.LastIndexByte(src[:b.Start], '\n') + 1
		if len(out) > 0 && b.Start <= out[len(out)-1].Start {
			continue
		}
		out = append(out, b)
	}
	for i := range out {
		out[i].End = end
		if i+1 < len(out) {
			out[i].End = out[i+1].Start
		}
		if parts := tile(out[i].Parts, src, out[i].End); len(parts) > 0 {
			parts[0].Start = out[i].Start
			out[i].Parts = parts
		}
	}
	return out
}

// title is the text of a heading without attributes and inline markup.
func title(n *ast.Heading, src []byte) string {
	var b strings.Builder
	for i := range n.Lines().Len() {
		seg := n.Lines().At(i)
		if i > 0 {
			b.WriteByte(' ')
		}
		b.Write(seg.Value(src))
	}
	return Plain(b.String())
}

var (
	attributes = regexp.MustCompile(`\s*\{\s*(?:[#.:][^{}]*|/\*[^{}]*\*/\s*)\}\s*$`)
	links      = regexp.MustCompile(`!?\[([^\[\]]*)\](?:\([^()]*\)|\[[^\[\]]*\])`)
	tags       = regexp.MustCompile(`</?[a-zA-Z][^<>]*>`)
	emphasis   = regexp.MustCompile("(\\*{1,3}|_{2,3}|~~|`+)([^*~`]+?)(\\*{1,3}|_{2,3}|~~|`+)")
	spaces     = regexp.MustCompile(`\s+`)
)

// Plain strips the inline markup of one line: trailing attributes ("{#id}", or MDX's
// "{/*id*/}"),
// links and images (their text stays), tags, emphasis and code marks.
func Plain(s string) string {
	s = attributes.ReplaceAllString(s, "")
	s = links.ReplaceAllString(s, "$1")
	s = tags.ReplaceAllString(s, "")
	s = emphasis.ReplaceAllString(s, "$2")
	return strings.TrimSpace(spaces.ReplaceAllString(s, " "))
}

// HeadingEnd is where the body after a heading block begins: after the ATX
// line, or after the underline of a Setext heading.
func HeadingEnd(src string, b Block) int {
	if b.Kind != Heading {
		return b.Start
	}
	end := lineEnd(src, b.Start)
	if atx.MatchString(src[b.Start:end]) {
		return end
	}
	for end < b.End {
		next := lineEnd(src, end)
		underline := setext.MatchString(src[end:next])
		end = next
		if underline {
			break
		}
	}
	return end
}

var (
	atx    = regexp.MustCompile(`^ {0,3}#{1,6}(?:[ \t]|\r?\n|$)`)
	setext = regexp.MustCompile(`^ {0,3}(?:=+|-+)[ \t]*\n?$`)
)

// lineEnd is the offset after the line break of the line that holds at.
func lineEnd(src string, at int) int {
	if i := strings.IndexByte(src[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(src)
}
