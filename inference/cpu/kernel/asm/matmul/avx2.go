package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

// ones and spread are constants of the AVX2 kernels. spread puts byte r of a
// repeated quadword into the high bytes of both halves of word r; an arithmetic
// shift by 8 then leaves it sign-extended, twice.
var ones, spread Mem

// avx2 has one strip a tile: four rows of float and integer sums fill half of
// its sixteen registers.
func avx2() isa {
	ones, spread = emit.Fill32("ones", 0x00010001), GLOBL("spread", 8|16)
	for r := range 8 {
		DATA(4*r, U32(0x00800080|uint32(r)<<8|uint32(r)<<24))
	}
	shapes := []shape{{1, 1}, {2, 1}, {4, 1}}
	return isa{name: "avx2", codes: (*tile).avx2Codes, own: avx2Constants, shapes: shapes, formats: []format{
		{name: "Q4_0", bits: 4, per: 1, zero: 8},
		{name: "Q4_1", bits: 4, per: 1, mins: true},
		{name: "Q5_0", bits: 5, per: 1, zero: 16},
		{name: "Q5_1", bits: 5, per: 1, mins: true},
		{name: "Q8_0", bits: 8, per: 1},
		{name: "Q4_K", bits: 4, per: 8, mins: true, subs: 1},
		{name: "Q5_K", bits: 5, per: 8, mins: true, subs: 1},
		{name: "Q6_K", bits: 8, per: 8, subs: 2},
	}}
}

func avx2Constants(t *tile) []Mem {
	if t.subs > 0 {
		return []Mem{spread}
	}
	return []Mem{ones}
}

// avx2Codes leaves in iacc the sums of s·q·Q over the block at off.
func (t *tile) avx2Codes(off int) {
	codes := off + t.scales()
	switch t.bits {
	case 4:
		t.nibbles(off, codes)
	case 5:
		t.fives(off, codes)
	case 8:
		t.bytes(off, codes)
	}
	if t.zero == 0 {
		return
	}
	for r, sum := range t.iacc {
		VPADDD(t.offset(r), sum, sum)
	}
}

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

// factors is the operand that folds 16-bit pair sums to 32 bits: ones, or the
// integer scales of the rows at off.
func (t *tile) factors(off int) Op {
	if t.subs == 0 {
		return t.constant(ones)
	}
	s := YMM()
	VPBROADCASTQ(Mem{Base: t.w, Disp: off}, s)
	VPSHUFB(t.constant(spread), s, s)
	VPSRAW(Imm(8), s, s)
	return s
}

// nibbles: eight products of at most 2·15·127 sum to 30480, within 16 bits.
func (t *tile) nibbles(off, codes int) {
	for v := range 4 {
		low, high := t.split(0, codes, v)
		t.products(t.iacc, low, v, v == 0)
		t.products(t.iacc, high, v+4, false)
	}
	w := t.factors(off)
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
			low, high := t.split(0, codes, v)
			t.addFifth(low, fifth, v)
			t.products(sums, low, v, v == 2*half)
			t.addFifth(high, fifth, v+4)
			t.products(sums, high, v+4, false)
		}
		w := t.factors(off)
		for r := range t.rows {
			VPMADDWD(w, sums[r], sums[r])
			if half > 0 {
				VPADDD(sums[r], t.iacc[r], t.iacc[r])
			}
		}
	}
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
		w := t.factors(off + 8*(g/4))
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
