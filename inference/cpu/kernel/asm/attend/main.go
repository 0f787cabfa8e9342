// Command attend generates the attention step of the kernel package: -isa avx2
// on vectors of eight floats, -isa avx512 on sixteen. Both give the same bits.
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
	e.declare()
	for _, src := range []source{
		{"F16", "uint16", 1, func(m Mem, v reg.VecVirtual) { VCVTPH2PS(m, v) }},
		{"F32", "float32", 2, func(m Mem, v reg.VecVirtual) { VMOVUPS(m, v) }},
	} {
		for _, shape := range shapes[e.width] {
			t := &tile{emitter: e, src: src, queries: shape[0], wide: shape[1]}
			t.generate()
		}
	}
	Generate()
}

// shapes are queries at once, and how many vectors of keys or of values beside
// them. The products of both are independent sums: 8 to 12 in 16 registers, 24 in 32.
// Fewer than six queries are faster with eight floats to a vector.
var shapes = map[emit.Width][][2]int{
	emit.Eight:   {{1, 8}, {2, 4}, {3, 4}, {4, 2}},
	emit.Sixteen: {{6, 4}},
}

// The constants of the kernel package.
const (
	blockKeys = 16            // AttendKeys
	chunkKeys = 4 * blockKeys // AttendBlocks blocks
	maxRows   = 24            // attendMax
	scoreRow  = 4 * chunkKeys // bytes of the scores of one query
)

// emitter holds what is common to the kernels of a file.
type emitter struct {
	isa      string
	width    emit.Width
	exp      *emit.Exp
	minusInf Mem
	window   Mem // chunkKeys words each of zeros, ones and zeros
}

func (e *emitter) declare() {
	e.exp, e.minusInf = emit.NewExp(e.width), e.width.Fill32("minusInf", 0xff800000)
	e.window = GLOBL("window", 8|16) // RODATA|NOPTR
	for i := range 3 * chunkKeys {
		DATA(4*i, U32(0xffffffff*uint32(i/chunkKeys%2)))
	}
}

// vectors is the number of vectors that hold a block's keys.
func (e *emitter) vectors() int { return blockKeys / int(e.width) }

// source is a type of cached keys and values; an element has 1<<shift bytes.
type source struct {
	name, goType string
	shift        int
	load         func(Mem, reg.VecVirtual)
}
