package tokenizer

// trie is a double array with XOR-ed offsets in the bit layout of darts-clone
// (github.com/s-yata/darts-clone), which SentencePiece stores in its
// precompiled_charsmap:
//
//	bits 0–7 and 31  label; bit 31 alone marks a value unit
//	bit 8            the node has a value, at the child with label 0
//	bits 10–30       offset to the children; bit 9: offset counts in 256s
//
// The child of node n for byte c is n ^ offset(n) ^ c.
type trie []uint32

const (
	trieValue   = 1 << 31
	trieHasLeaf = 1 << 8
	trieLabel   = trieValue | 0xff
)

func trieOffset(unit uint32) uint32 { return (unit >> 10) << ((unit & (1 << 9)) >> 6) }

// step goes from node to its child for byte c (not 0).
func (t trie) step(node uint32, c byte) (child uint32, ok bool) {
	child = node ^ trieOffset(t[node]) ^ uint32(c)
	if int(child) >= len(t) || t[child]&trieLabel != uint32(c) {
		return 0, false
	}
	return child, true
}

// value is the value of the key that ends at node.
func (t trie) value(node uint32) (int32, bool) {
	unit := t[node]
	if unit&trieHasLeaf == 0 {
		return 0, false
	}
	at := node ^ trieOffset(unit)
	if int(at) >= len(t) {
		return 0, false
	}
	return int32(t[at] &^ trieValue), true
}

// longest finds the longest key that s begins with; length 0 if none does.
func (t trie) longest(s string) (length int, value int32) {
	if len(t) == 0 {
		return 0, 0
	}
	node := uint32(0)
	for i := 0; i < len(s) && s[i] != 0; i++ {
		var ok bool
		if node, ok = t.step(node, s[i]); !ok {
			break
		}
		if v, ok := t.value(node); ok {
			length, value = i+1, v
		}
	}
	return length, value
}
