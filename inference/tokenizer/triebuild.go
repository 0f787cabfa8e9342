package tokenizer

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// maxKey bounds a key, and with it the depth of the builder's recursion.
const maxKey = 1 << 16

// trieEntry is a key and its value, which is not negative.
type trieEntry struct {
	key   string
	value int32
}

// buildTrie makes the trie of entries, which it sorts; of equal keys the lowest
// value stays. Keys must not be empty or hold a zero byte.
func buildTrie(entries []trieEntry) (trie, error) {
	if len(entries) == 0 {
		return nil, nil
	}
	slices.SortFunc(entries, func(a, b trieEntry) int {
		return cmp.Or(strings.Compare(a.key, b.key), cmp.Compare(a.value, b.value))
	})
	entries = slices.CompactFunc(entries, func(a, b trieEntry) bool { return a.key == b.key })
	for _, e := range entries {
		if len(e.key) == 0 || len(e.key) > maxKey || strings.IndexByte(e.key, 0) >= 0 {
			return nil, fmt.Errorf("%w: token %.40q of %d bytes (at most %d, none of them zero)", ErrMalformed, e.key, len(e.key), maxKey)
		}
	}
	var b trieBuilder
	b.grow()
	b.take(0)
	b.node(0, entries, 0)
	return b.units, nil
}

// trieBuilder places nodes depth first. Free units are a linked list in order
// of index.
type trieBuilder struct {
	units      []uint32
	used       []bool // the unit holds a node
	based      []bool // some node's children start here (label 0)
	next, prev []int32
	free, last int32 // ends of the list of free units; valid when count > 0
	count      int
}

// openUnits is how far back free units are looked for: older ones are given up,
// which costs a little memory and saves most of the time.
const openUnits = 16 * 256

func (b *trieBuilder) grow() {
	from := int32(len(b.units))
	for i := from; i < from+256; i++ {
		b.units = append(b.units, 0)
		b.used = append(b.used, false)
		b.based = append(b.based, false)
		b.prev = append(b.prev, i-1)
		b.next = append(b.next, i+1)
	}
	if b.count == 0 {
		b.free = from
	} else {
		b.next[b.last], b.prev[from] = from, b.last
	}
	b.last = from + 255
	b.count += 256
	for b.count > 0 && b.free < from+256-openUnits {
		b.free = b.next[b.free]
		b.count--
	}
}

func (b *trieBuilder) take(i int32) {
	b.used[i] = true
	b.count--
	if i == b.free {
		b.free = b.next[i]
	} else {
		b.next[b.prev[i]] = b.next[i]
	}
	if i == b.last {
		b.last = b.prev[i]
	} else {
		b.prev[b.next[i]] = b.prev[i]
	}
}

// node places the children of the node at index, whose path is the first depth
// bytes of all entries.
func (b *trieBuilder) node(index uint32, entries []trieEntry, depth int) {
	var buffer [256]byte
	labels := buffer[:0]
	hasValue := len(entries[0].key) == depth
	children := entries
	if hasValue {
		labels = append(labels, 0)
		children = entries[1:]
	}
	for i := range children {
		if c := children[i].key[depth]; len(labels) == 0 || labels[len(labels)-1] != c {
			labels = append(labels, c)
		}
	}
	base := b.place(index, labels)
	b.link(index, base)
	if hasValue {
		b.units[index] |= trieHasLeaf
		b.units[base] = uint32(entries[0].value) | trieValue
		labels = labels[1:]
	}
	for _, c := range labels {
		n := sort.Search(len(children), func(i int) bool { return children[i].key[depth] > c })
		b.node(base^uint32(c), children[:n], depth+1)
		children = children[n:]
	}
}

// link writes the offset from index to base; place made sure that it fits.
func (b *trieBuilder) link(index, base uint32) {
	offset := index ^ base
	if offset < 1<<21 {
		b.units[index] |= offset << 10
		return
	}
	b.units[index] |= offset<<2 | 1<<9
}

// place finds a base for a node with these labels, takes its units and writes
// the labels.
func (b *trieBuilder) place(index uint32, labels []byte) uint32 {
	base, ok := b.search(index, labels)
	for !ok {
		start := uint32(len(b.units))
		b.grow()
		// A fresh block has room for any labels; the low byte of index makes the
		// offset a multiple of 256, which always fits.
		base = start | index&0xff
		ok = b.fits(index, base, labels)
	}
	b.based[base] = true
	for _, c := range labels {
		child := base ^ uint32(c)
		b.take(int32(child))
		b.units[child] = uint32(c)
	}
	return base
}

func (b *trieBuilder) search(index uint32, labels []byte) (uint32, bool) {
	at := b.free
	for range b.count {
		base := uint32(at) ^ uint32(labels[0])
		if b.fits(index, base, labels) {
			return base, true
		}
		at = b.next[at]
	}
	return 0, false
}

func (b *trieBuilder) fits(index, base uint32, labels []byte) bool {
	offset := index ^ base
	if b.based[base] || (offset >= 1<<21 && offset&0xff != 0) {
		return false
	}
	for _, c := range labels {
		if b.used[base^uint32(c)] {
			return false
		}
	}
	return true
}
