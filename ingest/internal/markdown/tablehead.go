package markdown

import (
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// tableHeads finds GitHub's tables as goldmark does, but shows it no more of them than
// the head: it makes a node for each cell that a row could have, and a short text with a
// wide head above many short rows would take all memory. A table right below a line of
// text belongs to that paragraph.
type tableHeads struct{ parser.ParagraphTransformer }

func newTableHeads() tableHeads { return tableHeads{extension.NewTableParagraphTransformer()} }

// Transform implements parser.ParagraphTransformer.
func (t tableHeads) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	all := node.Lines()
	if all.Len() < 2 {
		return
	}
	head := text.NewSegments()
	head.AppendAll(all.Sliced(0, 2))
	node.SetLines(head)
	if t.ParagraphTransformer.Transform(node, reader, pc); node.Parent() != nil { // no table
		node.SetLines(all)
	}
}
