package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

// products multiplies unsigned codes u of column group g with the activations
// of every row into 16-bit pair sums, added to sums or written when first.
func (t *tile) products(sums []reg.VecVirtual, u reg.VecVirtual, g int, first bool) {
	for r := range t.rows {
		a := YMM()
		VPBROADCASTD(t.q.At(r, 4*g), a)
		if first {
			VPMADDUBSW(a, u, sums[r])
			continue
		}
		VPMADDUBSW(a, u, a)
		VPADDW(a, sums[r], sums[r])
	}
}

// split loads vector v of nibbles: low are column group v, high group v+4.
func (t *tile) split(codes, v int) (low, high reg.VecVirtual) {
	low, high = YMM(), YMM()
	VMOVDQU(Mem{Base: t.w, Disp: codes + 32*v}, low)
	VPSRLW(Imm(4), low, high)
	VPAND(nibble, low, low)
	VPAND(nibble, high, high)
	return low, high
}

// weights is the operand that folds 16-bit pair sums to 32 bits: ones, or the
// integer scales of the rows at off.
func (t *tile) weights(off int) Op {
	if t.subs == 0 {
		return ones
	}
	s := YMM()
	VPBROADCASTQ(Mem{Base: t.w, Disp: off}, s)
	VPSHUFB(spread, s, s)
	VPSRAW(Imm(8), s, s)
	return s
}

// nibbles: eight products of at most 2·15·127 sum to 30480, within 16 bits.
func (t *tile) nibbles(off, codes int) {
	for v := range 4 {
		low, high := t.split(codes, v)
		t.products(t.iacc, low, v, v == 0)
		t.products(t.iacc, high, v+4, false)
	}
	w := t.weights(off)
	for r := range t.rows {
		VPMADDWD(w, t.iacc[r], t.iacc[r])
	}
}

// fives: four products of at most 2·31·127 sum to 31496, so the pair sums are
// folded after every second vector.
func (t *tile) fives(off, codes int) {
	fifth := YMM()
	VMOVDQU(Mem{Base: t.w, Disp: codes + 128}, fifth)
	for half := range 2 {
		sums := t.iacc
		if half > 0 {
			sums = emit.YMMs(t.rows)
		}
		for v := 2 * half; v < 2*half+2; v++ {
			low, high := t.split(codes, v)
			t.addFifth(low, fifth, v)
			t.products(sums, low, v, v == 2*half)
			t.addFifth(high, fifth, v+4)
			t.products(sums, high, v+4, false)
		}
		w := t.weights(off)
		for r := range t.rows {
			VPMADDWD(w, sums[r], sums[r])
			if half > 0 {
				VPADDD(sums[r], t.iacc[r], t.iacc[r])
			}
		}
	}
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

// bytes multiplies signed codes: |w| times the activation with w's sign. With
// 8-bit codes one product (2·128·127) fills 16 bits and is folded at once; with
// the six bits of Q6_K (|w| ≤ 32) four of them, half a block, fit (32512).
func (t *tile) bytes(off, codes int) {
	run := 1
	if t.subs == 2 {
		run = 4
	}
	for g := 0; g < 8; g += run {
		sums := t.iacc
		if g > 0 {
			sums = emit.YMMs(t.rows)
		}
		for i := range run {
			t.signed(sums, codes, g+i, i == 0)
		}
		w := t.weights(off + 8*(g/4))
		for r := range t.rows {
			VPMADDWD(w, sums[r], sums[r])
			if g > 0 {
				VPADDD(sums[r], t.iacc[r], t.iacc[r])
			}
		}
	}
}

func (t *tile) signed(sums []reg.VecVirtual, codes, g int, first bool) {
	w, abs := YMM(), YMM()
	VMOVDQU(Mem{Base: t.w, Disp: codes + 32*g}, w)
	VPABSB(w, abs)
	for r := range t.rows {
		a := YMM()
		VPBROADCASTD(t.q.At(r, 4*g), a)
		VPSIGNB(w, a, a)
		if first {
			VPMADDUBSW(a, abs, sums[r])
			continue
		}
		VPMADDUBSW(a, abs, a)
		VPADDW(a, sums[r], sums[r])
	}
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
