// Command vector generates the AVX2 kernels over float vectors and the
// quantisation of activations, keys and values of the kernel package.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"

	"ragd/inference/cpu/kernel/asm/emit"
)

// emitter holds the constants of the file.
type emitter struct {
	exp   *emit.Exp
	loop  *emit.Loop
	abs   Mem // all bits but the sign
	order Mem // see newOrder
}

func main() {
	ConstraintExpr("amd64")
	e := &emitter{exp: emit.NewExp(emit.Eight), loop: emit.NewLoop(), abs: emit.Fill32("magnitude", 0x7fffffff), order: newOrder()}
	e.basic()
	e.halves()
	e.norms()
	e.softmax()
	e.gates()
	e.gelu()
	e.rope()
	e.quantize()
	e.toQ8()
	e.fromQ8()
	e.fetchQ8()
	Generate()
}
