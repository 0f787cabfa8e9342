package office

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
)

// node is an element (name without its prefix) or, without a name, a text.
type node struct {
	name     string
	attrs    []xml.Attr
	data     string
	children []*node
}

// maxDepth bounds how deep elements may nest.
const maxDepth = 256

// parse reads a part into a tree of at most limit nodes.
func parse(r io.Reader, limit int) (*node, error) {
	dec := xml.NewDecoder(r)
	root := &node{}
	stack := []*node{root}
	for count := 0; ; count++ {
		t, err := dec.Token()
		if errors.Is(err, io.EOF) {
			return root, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBroken, err)
		}
		if count > limit || len(stack) > maxDepth {
			return nil, fmt.Errorf("%w: more than %d elements or %d levels", ErrTooLarge, limit, maxDepth)
		}
		top := stack[len(stack)-1]
		switch t := t.(type) {
		case xml.StartElement:
			n := &node{name: t.Name.Local, attrs: t.Copy().Attr}
			top.children = append(top.children, n)
			stack = append(stack, n)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		case xml.CharData:
			top.children = append(top.children, &node{data: string(t)})
		}
	}
}

// attr is the value of an attribute, by its name without prefix.
func (n *node) attr(name string) string {
	for _, a := range n.attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// child is the first child element of a name, or an empty node.
func (n *node) child(name string) *node {
	for _, c := range n.children {
		if c.name == name {
			return c
		}
	}
	return &node{}
}

// all yields the elements below n in document order.
func (n *node) all() iter.Seq[*node] {
	return func(yield func(*node) bool) { n.walk(yield) }
}

func (n *node) walk(yield func(*node) bool) bool {
	for _, c := range n.children {
		if c.name != "" && (!yield(c) || !c.walk(yield)) {
			return false
		}
	}
	return true
}

// text joins the texts below n.
func (n *node) text() string {
	var b strings.Builder
	n.write(&b)
	return b.String()
}

func (n *node) write(b *strings.Builder) {
	b.WriteString(n.data)
	for _, c := range n.children {
		c.write(b)
	}
}

// squeeze puts text on one line.
func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// transparent are elements around rows and cells that mean nothing for the text.
var transparent = map[string]bool{"sdt": true, "sdtContent": true, "ins": true, "moveTo": true, "customXml": true, "smartTag": true}

// elements yields the children of a name, also inside transparent elements.
func elements(n *node, name string) iter.Seq[*node] {
	return func(yield func(*node) bool) { eachElement(n, name, yield) }
}

func eachElement(n *node, name string, yield func(*node) bool) bool {
	for _, c := range n.children {
		if c.name == name && !yield(c) || transparent[c.name] && !eachElement(c, name, yield) {
			return false
		}
	}
	return true
}

func count(nodes iter.Seq[*node]) int {
	n := 0
	for range nodes {
		n++
	}
	return n
}
