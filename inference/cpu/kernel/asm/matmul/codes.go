package main

import (
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// The bitwise instructions have other names in their EVEX form.

func (t *tile) and(a, b, dst Op) {
	if t.wide {
		VPANDD(a, b, dst)
		return
	}
	VPAND(a, b, dst)
}

func (t *tile) or(a, b, dst Op) {
	if t.wide {
		VPORD(a, b, dst)
		return
	}
	VPOR(a, b, dst)
}

func (t *tile) zeros(regs ...reg.VecVirtual) {
	for _, r := range regs {
		if t.wide {
			VPXORD(r, r, r)
		} else {
			VPXOR(r, r, r)
		}
	}
}

// split loads vector v of a strip's nibbles: low are column group v, high v+4.
func (t *tile) split(strip, codes, v int) (low, high reg.VecVirtual) {
	low, high = YMM(), YMM()
	VMOVUPS(t.weights(t.w, strip, codes+32*v), low)
	VPSRLW(Imm(4), low, high)
	t.and(t.constant(nibble), low, low)
	t.and(t.constant(nibble), high, high)
	return low, high
}

// addFifth moves bit g of every byte of fifth to bit 4 of q.
func (t *tile) addFifth(q, fifth reg.VecVirtual, g int) {
	b := YMM()
	switch {
	case g < 4:
		VPSLLW(Imm(uint64(4-g)), fifth, b)
		t.and(t.constant(bit4), b, b)
	case g == 4:
		t.and(t.constant(bit4), fifth, b)
	default:
		VPSRLW(Imm(uint64(g-4)), fifth, b)
		t.and(t.constant(bit4), b, b)
	}
	t.or(b, q, q)
}

// accumulate adds the block to the float accumulators: integer sum times d·D,
// then min times S, always in this order.
func (t *tile) accumulate(off int) {
	d, min := make([]reg.VecVirtual, t.strips), make([]reg.VecVirtual, t.strips)
	for s := range d {
		d[s] = YMM()
		VCVTPH2PS(t.weights(t.head, s, 0), d[s])
		if t.mins {
			min[s] = t.minimum(s, off)
		}
	}
	for r := range t.rows {
		big := YMM()
		VBROADCASTSS(t.d.At(r, 0), big)
		for s := range d {
			i, scale := s*t.rows+r, YMM()
			VMULPS(d[s], big, scale)
			VCVTDQ2PS(t.iacc[i], t.iacc[i])
			VFMADD231PS(scale, t.iacc[i], t.facc[i])
		}
		if t.mins {
			t.addMin(r, min)
		}
	}
}

func (t *tile) addMin(r int, min []reg.VecVirtual) {
	sum := YMM()
	VBROADCASTSS(t.s.At(r, 0), sum)
	for s, m := range min {
		if t.subs > 0 { // K formats subtract their mins
			VFNMADD231PS(sum, m, t.facc[s*t.rows+r])
		} else {
			VFMADD231PS(sum, m, t.facc[s*t.rows+r])
		}
	}
}

// minimum is the min of the eight rows (its negative for the K formats).
func (t *tile) minimum(strip, off int) reg.VecVirtual {
	m := YMM()
	VCVTPH2PS(t.weights(t.head, strip, 16), m)
	if t.subs > 0 {
		ints := YMM()
		VPMOVZXBD(t.weights(t.w, strip, off+8*t.subs), ints)
		VCVTDQ2PS(ints, ints)
		VMULPS(ints, m, m)
	}
	return m
}

// offset is −zero·ΣQ of a row's block, from O = −128·ΣQ.
func (t *tile) offset(r int) reg.VecVirtual {
	v := YMM()
	VPBROADCASTD(t.s.At(r, 0), v)
	if t.zero < 128 {
		VPSRAD(Imm(uint64(bits.TrailingZeros(128/uint(t.zero)))), v, v)
	}
	return v
}
