package sample

import "math"

// tokenSet is a set of token ids below a size, one bit each.
type tokenSet struct {
	bits []uint64
	size int
}

func newTokenSet(size int) tokenSet { return tokenSet{make([]uint64, (size+63)/64), size} }

func (s *tokenSet) clear() { clear(s.bits) }

// add ignores ids outside of the size.
func (s *tokenSet) add(id int32) {
	if id >= 0 && int(id) < s.size {
		s.bits[id/64] |= 1 << (id % 64)
	}
}

// mask rules out every token that is not in the set.
func (s *tokenSet) mask(logits []float32) {
	for i := range logits {
		if i >= s.size || s.bits[i/64]>>(i%64)&1 == 0 {
			logits[i] = float32(math.Inf(-1))
		}
	}
}
