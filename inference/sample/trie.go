package sample

import (
	"bytes"
	"slices"
)

// entry is a token with its bytes.
type entry struct {
	id    int32
	piece []byte
}

// trie has a node for each start of a piece, in the order of a walk that goes down
// first.
type trie []trieNode

type trieNode struct {
	id    int32 // the token that ends here; -1 for none
	skip  int32 // index of the node behind all that begin with this one
	depth uint16
	c     byte
}

func newTrie(entries []entry) trie {
	slices.SortStableFunc(entries, func(a, b entry) int { return bytes.Compare(a.piece, b.piece) })
	var t trie
	var open []int32 // nodes from the root to the last one
	var last []byte
	for _, e := range entries {
		shared := common(last, e.piece)
		if shared == len(e.piece) {
			shared-- // the same piece again: a leaf of its own
		}
		t.close(&open, shared)
		for d := shared; d < len(e.piece); d++ {
			open = append(open, int32(len(t)))
			t = append(t, trieNode{id: -1, depth: uint16(d), c: e.piece[d]})
		}
		t[len(t)-1].id = e.id
		last = e.piece
	}
	t.close(&open, 0)
	return t
}

// close ends the open nodes at and below a depth.
func (t trie) close(open *[]int32, depth int) {
	for _, at := range (*open)[depth:] {
		t[at].skip = int32(len(t))
	}
	*open = (*open)[:depth]
}

func common(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// walk adds the tokens all of whose bytes step takes. It is called with the number of
// bytes before and the byte, and after a byte that it took with those behind.
func (t trie) walk(to *tokenSet, step func(depth int, c byte) bool) {
	for i := int32(0); i < int32(len(t)); {
		n := &t[i]
		if !step(int(n.depth), n.c) {
			i = n.skip
			continue
		}
		if n.id >= 0 {
			to.add(n.id)
		}
		i++
	}
}
