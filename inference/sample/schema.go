package sample

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// Schema is a JSON schema (draft 2020-12) made ready to hold an answer to it. It is
// immutable and may serve many grammars at once.
//
// An answer has the properties of an object in the order in which the schema lists
// them, and no others; the free objects of a schema without properties have any.
// Numbers have at most 15 digits, those with bounds at most six after the point.
// Strings hold no escaped surrogates. All of these are values that the schema allows.
type Schema struct{ root *node }

// SchemaError is a schema that no grammar can be made of.
type SchemaError struct {
	Path   string // JSON pointer of the place
	Reason string
}

func (e *SchemaError) Error() string { return fmt.Sprintf("at %q: %s", "#"+e.Path, e.Reason) }

// kind is what a node describes.
type kind uint8

const (
	kindUnion   kind = iota // one of several
	kindObject              //
	kindArray               //
	kindString              //
	kindNumber              // any number
	kindBounded             // an integer, or a number between bounds
	kindWords               // one of some JSON texts
)

// node describes a value.
type node struct {
	kind kind
	// height is how many containers the smallest value nests; never when there is
	// no value.
	height int

	props    []property // of an object, in order
	values   *node      // of a free object
	prefix   []*node    // the first items of an array
	items    *node      // the items behind them; nil for none
	min, max int        // items, or characters; max is unlimited when there is no limit
	words    []string   // sorted
	scale    int        // digits after the point of a bounded number
	lo, hi   int64      // its bounds, times 10^scale

	any  []*node // of a union
	flat []*node // any, with unions inside taken apart
}

// property is one of an object.
type property struct {
	name     string // in quotes, as it is written
	value    *node
	required bool
}

const (
	never     = math.MaxInt32 // the height of a node without a value
	unlimited = math.MaxInt32
	// maxDepth bounds how deep an answer nests.
	maxDepth = 64
)

// ParseSchema reads a schema. The error is a *SchemaError: a keyword that is not
// supported, a broken schema, or one that no finite value satisfies.
func ParseSchema(data []byte) (*Schema, error) {
	if !json.Valid(data) {
		return nil, &SchemaError{Reason: "is not JSON"}
	}
	c := &compiler{doc: newDocument(data), refs: map[string]*node{}}
	root, err := c.ref("#", "")
	if err != nil {
		return nil, err
	}
	if err := c.finish(); err != nil {
		return nil, err
	}
	if root.height > maxDepth {
		return nil, &SchemaError{Reason: fmt.Sprintf("no value that nests at most %d deep satisfies it", maxDepth)}
	}
	return &Schema{root}, nil
}

// finish tells what shows only when all nodes are there.
func (c *compiler) finish() error {
	c.measure()
	for _, n := range c.nodes {
		n.flat = flatten(nil, n, map[*node]bool{})
	}
	for _, o := range c.exclusive {
		if !o.disjoint() {
			return &SchemaError{o.path, `keyword "oneOf" is supported only where its alternatives differ in type or in a constant property; use "anyOf"`}
		}
	}
	return nil
}

// measure sets the heights: the least fixed point, found by going round until
// nothing falls any more. What a node is made of mostly comes behind it.
func (c *compiler) measure() {
	for _, n := range c.nodes {
		n.height = never
	}
	for changed := true; changed; {
		changed = false
		for _, n := range slices.Backward(c.nodes) {
			if h := n.measured(); h < n.height {
				n.height, changed = h, true
			}
		}
	}
}

func (n *node) measured() int {
	h := 0
	switch n.kind {
	case kindUnion:
		h = never
		for _, a := range n.any {
			h = min(h, a.height)
		}
		return h
	case kindObject:
		for _, p := range n.props {
			if p.required {
				h = max(h, p.value.height)
			}
		}
	case kindArray:
		for i := range min(n.min, len(n.prefix)+1) {
			h = max(h, n.item(i).heightOrNever())
		}
	case kindWords:
		if len(n.words) == 0 {
			return never
		}
		return 0
	case kindBounded:
		if n.lo > n.hi {
			return never
		}
		return 0
	case kindString:
		if n.min > n.max {
			return never
		}
		return 0
	default:
		return 0
	}
	if h == never || n.min > n.max {
		return never
	}
	return h + 1
}

func (n *node) heightOrNever() int {
	if n == nil {
		return never
	}
	return n.height
}

// item describes item i of an array; nil when there can be none.
func (n *node) item(i int) *node {
	if i < len(n.prefix) {
		return n.prefix[i]
	}
	return n.items
}

// flatten appends what is no union and has a value.
func flatten(dst []*node, n *node, seen map[*node]bool) []*node {
	if seen[n] || n.height == never {
		return dst
	}
	seen[n] = true
	if n.kind != kindUnion {
		return append(dst, n)
	}
	for _, a := range n.any {
		dst = flatten(dst, a, seen)
	}
	return dst
}

// oneOf is a union of which exactly one alternative may match.
type oneOf struct {
	path string
	any  []*node
}

// disjoint reports that no value matches two alternatives, as far as it shows.
func (o oneOf) disjoint() bool {
	for i, a := range o.any {
		for _, b := range o.any[:i] {
			for _, x := range a.flat {
				for _, y := range b.flat {
					if !apart(x, y) {
						return false
					}
				}
			}
		}
	}
	return true
}

// apart reports that two nodes, which are no unions, have no value in common.
func apart(x, y *node) bool {
	if x.kind == kindWords && y.kind == kindWords {
		return !share(x.words, y.words)
	}
	if x.kind == kindWords {
		x, y = y, x
	}
	if y.kind == kindWords {
		return !slices.ContainsFunc(y.words, func(w string) bool {
			ok, sure := x.judge(w)
			return ok || !sure
		})
	}
	if x.kind == kindObject && y.kind == kindObject {
		return tagged(x, y)
	}
	number := func(k kind) bool { return k == kindNumber || k == kindBounded }
	return x.kind != y.kind && !(number(x.kind) && number(y.kind))
}

// tagged reports a property that both objects must have and that tells them apart.
func tagged(x, y *node) bool {
	for _, p := range x.props {
		for _, q := range y.props {
			if p.name == q.name && p.required && q.required && constant(p.value) && constant(q.value) &&
				!share(p.value.flat[0].words, q.value.flat[0].words) {
				return true
			}
		}
	}
	return false
}

func constant(n *node) bool { return len(n.flat) == 1 && n.flat[0].kind == kindWords }

func share(a, b []string) bool {
	for _, x := range a {
		for _, y := range b {
			if x == y {
				return true
			}
		}
	}
	return false
}
