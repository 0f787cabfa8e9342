package tokenizer

// pairTable maps two token ids to the rank of their merge and the id they
// become. It is an open-addressing hash table, about twice as fast as a map on
// the hot path of byte-pair encoding.
type pairTable struct {
	slots []pairSlot
	shift uint // hash bits that are dropped
}

type pairSlot struct {
	key    uint64 // left+1 <<32 | right; 0: empty
	rank   uint32
	merged int32
}

// newPairTable has room for n pairs at half load.
func newPairTable(n int) *pairTable {
	bits := uint(4)
	for 1<<bits < 2*n {
		bits++
	}
	return &pairTable{slots: make([]pairSlot, 1<<bits), shift: 64 - bits}
}

func pairKey(left, right int32) uint64 { return uint64(uint32(left)+1)<<32 | uint64(uint32(right)) }

// find is the slot of key or the empty one where it belongs. The multiplier is
// 2^64 divided by the golden ratio (Knuth, volume 3, 6.4).
func (t *pairTable) find(key uint64) *pairSlot {
	mask := uint64(len(t.slots) - 1)
	for i := key * 0x9e3779b97f4a7c15 >> t.shift; ; i = (i + 1) & mask {
		if s := &t.slots[i]; s.key == key || s.key == 0 {
			return s
		}
	}
}

// add enters a pair; the first rank given to it stays.
func (t *pairTable) add(left, right int32, rank uint32, merged int32) {
	key := pairKey(left, right)
	if s := t.find(key); s.key == 0 {
		*s = pairSlot{key: key, rank: rank, merged: merged}
	}
}

// get is the rank and result of a pair, rank none if it has none.
func (t *pairTable) get(left, right int32) (rank uint32, merged int32) {
	s := t.find(pairKey(left, right))
	if s.key == 0 {
		return none, 0
	}
	return s.rank, s.merged
}
