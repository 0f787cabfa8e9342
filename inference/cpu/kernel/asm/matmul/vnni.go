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

// vnni leaves out Q6_K, whose two scales a block suit the AVX2 kernel. Signed
// bytes become unsigned ones by adding 128. Its 32 registers hold two strips,
// which share the loads of the activations.
func vnni() isa {
	sign = emit.Fill32("sign", 0x80808080)
	shapes := []shape{{1, 1}, {2, 1}, {4, 1}, {4, 2}}
	return isa{name: "vnni", codes: (*tile).vnniCodes, own: vnniConstants, wide: true, shapes: shapes, formats: []format{
		{name: "Q4_0", bits: 4, per: 1, zero: 8},
		{name: "Q4_1", bits: 4, per: 1, mins: true},
		{name: "Q5_0", bits: 5, per: 1, zero: 16},
		{name: "Q5_1", bits: 5, per: 1, mins: true},
		{name: "Q8_0", bits: 8, per: 1, zero: 128},
		{name: "Q4_K", bits: 4, per: 8, mins: true, subs: 1},
		{name: "Q5_K", bits: 5, per: 8, mins: true, subs: 1},
	}}
}

func vnniConstants(t *tile) []Mem {
	if t.bits == 8 {
		return []Mem{sign}
	}
	return nil
}

// vnniCodes leaves in iacc the sums of s·q·Q over the block at off.
func (t *tile) vnniCodes(off int) {
	t.start()
	codes := off + t.scales()
	if t.bits == 8 {
		t.dotBytes(codes)
	} else {
		t.dotNibbles(codes)
	}
	if t.subs == 0 {
		return
	}
	for s := range t.strips {
		f := YMM()
		VPMOVZXBD(t.weights(t.w, s, off), f)
		for r := range t.rows {
			sum := t.iacc[s*t.rows+r]
			VPMULLD(f, sum, sum)
		}
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
		t.dot(u, g)
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
		t.dot(low, v)
		t.dot(high, v+4)
	}
}

// dot adds the products of each strip's unsigned codes with column group g of
// every row.
func (t *tile) dot(u []reg.VecVirtual, g int) {
	for r := range t.rows {
		if t.strips == 1 {
			vpdpbusd(t.q.At(r, 4*g), u[0], t.iacc[r], "BCST")
			continue
		}
		a := YMM()
		VPBROADCASTD(t.q.At(r, 4*g), a)
		for s := range u {
			vpdpbusd(a, u[s], t.iacc[s*t.rows+r])
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
