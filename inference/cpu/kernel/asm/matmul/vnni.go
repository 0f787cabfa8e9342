package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

// sign has the upper bit of every byte.
var sign Mem

// vnniFormats leaves out Q6_K, whose two scales a block suit the AVX2 kernel.
// Signed bytes become unsigned ones by adding 128.
func vnniFormats() []format {
	sign = emit.Fill32("sign", 0x80808080)
	return []format{
		{name: "Q4_0", bits: 4, per: 1, bias: emit.FillF32("bias8", -8)},
		{name: "Q4_1", bits: 4, per: 1, mins: true},
		{name: "Q5_0", bits: 5, per: 1, bias: emit.FillF32("bias16", -16)},
		{name: "Q5_1", bits: 5, per: 1, mins: true},
		{name: "Q8_0", bits: 8, per: 1, offset: true},
		{name: "Q4_K", bits: 4, per: 8, mins: true, subs: 1},
		{name: "Q5_K", bits: 5, per: 8, mins: true, subs: 1},
	}
}

// vnniCodes leaves in iacc the sums of s·q·Q over the block at off.
func (t *tile) vnniCodes(off int) {
	codes := off + t.scales()
	for r, sum := range t.iacc {
		if t.offset {
			VPBROADCASTD(t.s.At(r, 0), sum)
		} else {
			emit.Zero(sum)
		}
	}
	switch t.bits {
	case 8:
		for g := range 8 {
			u := YMM()
			VMOVDQU(Mem{Base: t.w, Disp: codes + 32*g}, u)
			VPXOR(sign, u, u)
			t.dot(u, g)
		}
	default:
		t.dotNibbles(codes)
	}
	if t.subs == 0 {
		return
	}
	s := YMM()
	VPMOVZXBD(Mem{Base: t.w, Disp: off}, s)
	for _, sum := range t.iacc {
		VPMULLD(s, sum, sum)
	}
}

func (t *tile) dotNibbles(codes int) {
	var fifth reg.VecVirtual
	if t.bits == 5 {
		fifth = YMM()
		VMOVDQU(Mem{Base: t.w, Disp: codes + 128}, fifth)
	}
	for v := range 4 {
		low, high := t.split(codes, v)
		if t.bits == 5 {
			t.addFifth(low, fifth, v)
			t.addFifth(high, fifth, v+4)
		}
		t.dot(low, v)
		t.dot(high, v+4)
	}
}

// dot adds the products of unsigned codes with column group g of every row.
// avo 0.5 does not know VPDPBUSD; the Go assembler does.
func (t *tile) dot(u reg.VecVirtual, g int) {
	for r, sum := range t.iacc {
		ops := []Op{t.q.At(r, 4*g), u, sum}
		Instruction(&ir.Instruction{
			Opcode: "VPDPBUSD", Suffixes: []string{"BCST"}, Operands: ops,
			Inputs: ops, Outputs: []Op{sum}, ISA: []string{"AVX512VNNI", "AVX512VL"},
		})
	}
}
