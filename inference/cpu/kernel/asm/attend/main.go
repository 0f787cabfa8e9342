// Command attend generates the attention step of the kernel package: -isa avx2 on
// vectors of eight floats, -isa avx512 on sixteen.
package main

import (
	"flag"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

func main() {
	isa := flag.String("isa", "avx2", "instruction set: avx2 or avx512")
	flag.Parse()
	ConstraintExpr("amd64")
	e := &emitter{isa: *isa, width: emit.Eight}
	if e.isa == "avx512" {
		e.width = emit.Sixteen
	}
	e.exp, e.minusInf = emit.NewExp(e.width), e.width.Fill32("minusInf", 0xff800000)
	e.iota = GLOBL("iota", 8|16) // RODATA|NOPTR
	for i := range blockRows {
		DATA(4*i, U32(uint32(i)))
	}
	for _, src := range []source{
		{"F16", "uint16", 1, func(m Mem, v reg.VecVirtual) { VCVTPH2PS(m, v) }},
		{"F32", "float32", 2, func(m Mem, v reg.VecVirtual) { VMOVUPS(m, v) }},
	} {
		if e.width == emit.Eight {
			src.fetch()
		}
		for _, shape := range shapes[e.width] {
			t := &tile{emitter: e, src: src, queries: shape[0], wide: shape[1]}
			t.generate()
		}
	}
	Generate()
}

// shapes are queries at once, and how many keys (then vectors of values) beside
// them: 8 to 12 independent sums in 16 registers, 8 to 24 in 32.
var shapes = map[emit.Width][][2]int{
	emit.Eight:   {{1, 8}, {2, 4}, {3, 4}, {4, 2}},
	emit.Sixteen: {{1, 8}, {2, 8}, {3, 8}, {4, 4}, {6, 4}},
}

// The constants of the kernel package.
const (
	blockRows = 16 // attendRows
	blocks    = 4  // attendBlocks
	maxRows   = 18 // attendMax
)

// emitter holds what is common to the kernels of a file.
type emitter struct {
	isa            string
	width          emit.Width
	exp            *emit.Exp
	minusInf, iota Mem
}

// vectors is the number of vectors that hold a block's scores.
func (e *emitter) vectors() int { return blockRows / int(e.width) }

// source is a type of cached keys and values; an element has 1<<shift bytes.
type source struct {
	name, goType string
	shift        int
	load         func(Mem, reg.VecVirtual)
}
