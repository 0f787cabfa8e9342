package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// split loads vector v of nibbles: low are column group v, high group v+4.
func (t *tile) split(codes, v int) (low, high reg.VecVirtual) {
	low, high = YMM(), YMM()
	VMOVDQU(Mem{Base: t.w, Disp: codes + 32*v}, low)
	VPSRLW(Imm(4), low, high)
	VPAND(nibble, low, low)
	VPAND(nibble, high, high)
	return low, high
}

// addFifth moves bit g of every byte of fifth to bit 4 of q.
func (t *tile) addFifth(q, fifth reg.VecVirtual, g int) {
	b := YMM()
	switch {
	case g < 4:
		VPSLLW(Imm(uint64(4-g)), fifth, b)
		VPAND(bit4, b, b)
	case g == 4:
		VPAND(bit4, fifth, b)
	default:
		VPSRLW(Imm(uint64(g-4)), fifth, b)
		VPAND(bit4, b, b)
	}
	VPOR(b, q, q)
}

// accumulate adds the block to the float accumulators: integer sum times d·D,
// then min times S, always in this order.
func (t *tile) accumulate(off int) {
	d, min := YMM(), t.minimum(off)
	VCVTPH2PS(Mem{Base: t.head}, d)
	for r, acc := range t.facc {
		scale := YMM()
		VBROADCASTSS(t.d.At(r, 0), scale)
		VMULPS(d, scale, scale)
		VCVTDQ2PS(t.iacc[r], t.iacc[r])
		VFMADD231PS(scale, t.iacc[r], acc)
		if !t.hasMin() {
			continue
		}
		sum := YMM()
		VBROADCASTSS(t.s.At(r, 0), sum)
		if t.subs > 0 { // K formats subtract their mins
			VFNMADD231PS(sum, min, acc)
		} else {
			VFMADD231PS(sum, min, acc)
		}
	}
}

// minimum is the min of the eight rows (its negative for the K formats).
func (t *tile) minimum(off int) reg.VecVirtual {
	m := YMM()
	switch {
	case t.mins && t.subs > 0:
		ints := YMM()
		VPMOVZXBD(Mem{Base: t.w, Disp: off + 8*t.subs}, ints)
		VCVTDQ2PS(ints, ints)
		VCVTPH2PS(Mem{Base: t.head, Disp: 16}, m)
		VMULPS(ints, m, m)
	case t.mins:
		VCVTPH2PS(Mem{Base: t.head, Disp: 16}, m)
	case t.hasMin():
		VCVTPH2PS(Mem{Base: t.head}, m)
		VMULPS(t.bias, m, m)
	}
	return m
}
