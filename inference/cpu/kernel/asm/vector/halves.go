package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

// halves emits the kernels over IEEE halves. There is no masked load of 16-bit
// elements: these take whole vectors of eight, n > 0 of them, and the Go callers
// do the rest.
func (e *emitter) halves() {
	emit.Begin("avx2ToF16", "func(dst *uint16, src *float32, n int)", "converts n × 8 values.")
	dst, src := emit.Ptr("dst"), emit.Ptr("src")
	vectors([]step{{dst, 16}, {src, 32}}, func() {
		v := YMM()
		VMOVUPS(emit.At(src), v)
		VCVTPS2PH(Imm(0), v, emit.At(dst)) // to nearest even
	})
	emit.End()

	emit.Begin("avx2FromF16", "func(dst *float32, src *uint16, n int)", "converts n × 8 values.")
	out, in := emit.Ptr("dst"), emit.Ptr("src")
	vectors([]step{{out, 32}, {in, 16}}, func() {
		v := YMM()
		VCVTPH2PS(emit.At(in), v)
		VMOVUPS(v, emit.At(out))
	})
	emit.End()

	emit.Begin("avx2DotF16", "func(a *float32, b *uint16, n int) float32", "sums n × 8 products.")
	a, b, sum := emit.Ptr("a"), emit.Ptr("b"), YMM()
	emit.Zero(sum)
	vectors([]step{{a, 32}, {b, 16}}, func() {
		v := YMM()
		VCVTPH2PS(emit.At(b), v)
		VFMADD231PS(emit.At(a), v, sum)
	})
	emit.Result(emit.Sum(sum))
	emit.End()

	emit.Begin("avx2AxpyF16", "func(y *float32, a float32, x *uint16, n int)", "updates n × 8 values.")
	f, y, x := emit.Broadcast("a"), emit.Ptr("y"), emit.Ptr("x")
	vectors([]step{{y, 32}, {x, 16}}, func() {
		v, w := YMM(), YMM()
		VCVTPH2PS(emit.At(x), v)
		VMOVUPS(emit.At(y), w)
		VFMADD231PS(f, v, w)
		VMOVUPS(w, emit.At(y))
	})
	emit.End()
}

// step is a pointer and the bytes it moves for each vector.
type step struct {
	p     reg.GPVirtual
	bytes uint64
}

func vectors(steps []step, body func()) {
	n := emit.Ptr("n")
	Label("vector")
	body()
	for _, s := range steps {
		ADDQ(Imm(s.bytes), s.p)
	}
	DECQ(n)
	JNZ(LabelRef("vector"))
}
