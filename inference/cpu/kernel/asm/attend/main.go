// Command attend generates the AVX2 attention step of the kernel package.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

func main() {
	ConstraintExpr("amd64")
	e := &emitter{exp: emit.NewExp(), minusInf: emit.Fill32("minusInf", 0xff800000), iota: GLOBL("iota", 8|16)}
	for i := range attendRows {
		DATA(4*i, U32(uint32(i)))
	}
	for _, src := range []source{
		{"F16", "uint16", 1, func(m Mem, v reg.VecVirtual) { VCVTPH2PS(m, v) }},
		{"F32", "float32", 2, func(m Mem, v reg.VecVirtual) { VMOVUPS(m, v) }},
	} {
		// Queries at once, and how many keys (then vectors of values) beside
		// them keep 8 to 12 independent sums in registers.
		for _, shape := range [][2]int{{1, 8}, {2, 4}, {3, 4}, {4, 2}} {
			t := &tile{emitter: e, src: src, queries: shape[0], wide: shape[1]}
			t.generate()
		}
	}
	Generate()
}

// attendRows is the constant of that name in the kernel package.
const attendRows = 16

// emitter holds the constants of the file.
type emitter struct {
	exp            *emit.Exp
	minusInf, iota Mem
}

// source is a type of cached keys and values; an element has 1<<shift bytes.
type source struct {
	name, goType string
	shift        int
	load         func(Mem, reg.VecVirtual)
}

func (s *source) vec() int { return 8 << s.shift }
