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

// addAll adds the ids of another set of the same size.
func (s *tokenSet) addAll(o tokenSet) {
	for i, w := range o.bits {
		s.bits[i] |= w
	}
}

// mask rules out every token that is not in the set.
func (s *tokenSet) mask(logits []float32) {
	none := float32(math.Inf(-1))
	for at, w := range s.bits {
		rows := logits[min(at*64, len(logits)):min(at*64+64, len(logits))]
		switch w {
		case math.MaxUint64:
		case 0:
			for i := range rows {
				rows[i] = none
			}
		default:
			for i := range rows {
				if w>>i&1 == 0 {
					rows[i] = none
				}
			}
		}
	}
	for i := min(s.size, len(logits)); i < len(logits); i++ {
		logits[i] = none
	}
}
