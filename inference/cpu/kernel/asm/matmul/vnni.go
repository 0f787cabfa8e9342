package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

// sign has the upper bit of every byte, thirtyTwo has bytes of 32.
var sign, thirtyTwo Mem

// vnni adds 128 to the signed bytes of Q8_0 and 32 to those of Q6_K, as the
// instruction wants one unsigned factor.
func vnni() isa {
	sign, thirtyTwo = emit.Fill32("sign", 0x80808080), emit.Fill32("thirtyTwo", 0x20202020)
	shapes := []shape{{1, 1}, {2, 1}, {4, 1}}
	return isa{name: "vnni", codes: (*tile).vnniCodes, own: vnniConstants, wide: true, shapes: shapes, formats: []format{
		{name: "Q4_0", bits: 4, per: 1, zero: 8},
		{name: "Q4_1", bits: 4, per: 1, mins: true},
		{name: "Q5_0", bits: 5, per: 1, zero: 16},
		{name: "Q5_1", bits: 5, per: 1, mins: true},
		{name: "Q8_0", bits: 8, per: 1, zero: 128},
		{name: "Q4_K", bits: 4, per: 8, mins: true, subs: 1},
		{name: "Q5_K", bits: 5, per: 8, mins: true, subs: 1},
		{name: "Q6_K", bits: 8, per: 8, subs: 2, zero: 32},
	}}
}

func vnniConstants(t *tile) []Mem {
	switch {
	case t.subs == 2:
		return []Mem{thirtyTwo}
	case t.bits == 8:
		return []Mem{sign}
	}
	return nil
}

// vnniCodes leaves in iacc the sums of s·q·Q over the block at off.
func (t *tile) vnniCodes(off int) {
	codes := off + t.scales()
	if t.subs == 2 {
		t.dotHalves(off, codes)
		return
	}
	t.start()
	if t.bits == 8 {
		t.dotBytes(codes)
	} else {
		t.dotNibbles(codes)
	}
	if t.subs == 1 {
		t.scale(t.iacc, off, func(m Mem, v reg.VecVirtual) { VPMOVZXBD(m, v) })
	}
}

// scale multiplies sums by the integer scales at off.
func (t *tile) scale(sums []reg.VecVirtual, off int, load func(Mem, reg.VecVirtual)) {
	for s := range t.strips {
		f := YMM()
		load(t.weights(t.w, s, off), f)
		for r := range t.rows {
			VPMULLD(f, sums[s*t.rows+r], sums[s*t.rows+r])
		}
	}
}

// dotHalves does the 16 columns of either scale apart. The sums of the first
// start from c = −32·ΣQ over them, those of the second from −32·ΣQ over all
// columns less c.
func (t *tile) dotHalves(off, codes int) {
	first := emit.YMMs(t.rows) // −c
	for half := range 2 {
		sums := t.iacc
		if half > 0 {
			sums = emit.YMMs(len(t.iacc))
		}
		for r := range t.rows {
			t.startHalf(half, r, first[r], sums)
		}
		for g := 4 * half; g < 4*half+4; g++ {
			u := emit.YMMs(t.strips)
			for s := range u {
				VMOVUPS(t.weights(t.w, s, codes+32*g), u[s])
				VPADDB(t.constant(thirtyTwo), u[s], u[s])
			}
			t.dot(sums, u, g)
		}
		t.scale(sums, off+8*half, func(m Mem, v reg.VecVirtual) { VPMOVSXBD(m, v) })
		if half > 0 {
			for i, sum := range sums {
				VPADDD(sum, t.iacc[i], t.iacc[i])
			}
		}
	}
}

// startHalf sets the sums of row r in every strip.
func (t *tile) startHalf(half, r int, first reg.VecVirtual, sums []reg.VecVirtual) {
	if half > 0 {
		o := t.offset(r)
		VPADDD(first, o, o)
		for s := range t.strips {
			VMOVAPS(o, sums[s*t.rows+r])
		}
		return
	}
	t.zeros(first)
	for g := range 4 {
		vpdpbusd(t.q.At(r, 4*g), t.constant(thirtyTwo), first, "BCST")
	}
	for s := range t.strips {
		sum := sums[s*t.rows+r]
		t.zeros(sum)
		VPSUBD(first, sum, sum)
	}
}

// start sets the sums to zero or to the offset, which strips share.
func (t *tile) start() {
	if t.zero == 0 {
		t.zeros(t.iacc...)
		return
	}
	for r := range t.rows {
		o := t.offset(r)
		for s := range t.strips {
			VMOVAPS(o, t.iacc[s*t.rows+r])
		}
	}
}

func (t *tile) dotBytes(codes int) {
	for g := range 8 {
		u := emit.YMMs(t.strips)
		for s := range u {
			VMOVUPS(t.weights(t.w, s, codes+32*g), u[s])
			VPXORD(t.constant(sign), u[s], u[s])
		}
		t.dot(t.iacc, u, g)
	}
}

func (t *tile) dotNibbles(codes int) {
	fifth := emit.YMMs(t.strips)
	if t.bits == 5 {
		for s := range fifth {
			VMOVUPS(t.weights(t.w, s, codes+128), fifth[s])
		}
	}
	low, high := make([]reg.VecVirtual, t.strips), make([]reg.VecVirtual, t.strips)
	for v := range 4 {
		for s := range low {
			low[s], high[s] = t.split(s, codes, v)
			if t.bits == 5 {
				t.addFifth(low[s], fifth[s], v)
				t.addFifth(high[s], fifth[s], v+4)
			}
		}
		t.dot(t.iacc, low, v)
		t.dot(t.iacc, high, v+4)
	}
}

// dot adds the products of each strip's unsigned codes with column group g of
// every row.
func (t *tile) dot(sums, u []reg.VecVirtual, g int) {
	for r := range t.rows {
		if t.strips == 1 {
			vpdpbusd(t.q.At(r, 4*g), u[0], sums[r], "BCST")
			continue
		}
		a := YMM()
		VPBROADCASTD(t.q.At(r, 4*g), a)
		for s := range u {
			vpdpbusd(a, u[s], sums[s*t.rows+r])
		}
	}
}

// vpdpbusd adds to each word of sum four products of signed a and unsigned u.
// avo 0.5 does not know the instruction; the Go assembler does.
func vpdpbusd(a, u, sum Op, suffixes ...string) {
	ops := []Op{a, u, sum}
	Instruction(&ir.Instruction{
		Opcode: "VPDPBUSD", Suffixes: suffixes, Operands: ops, Inputs: ops, Outputs: []Op{sum},
		ISA: []string{"AVX512VNNI", "AVX512VL"},
	})
}
