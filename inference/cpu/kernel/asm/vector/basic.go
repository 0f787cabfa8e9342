package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

// unroll is how many vectors the reductions sum side by side.
const unroll = 4

func (e *emitter) basic() {
	emit.Begin("avx2Dot", "func(a, b []float32) float32", "is Set.Dot.")
	a, b, n := emit.Base("a"), emit.Base("b"), emit.Len("a")
	sums := emit.YMMs(unroll)
	emit.Zero(sums...)
	e.loop.Unrolled("dot", unroll, n, []reg.GPVirtual{a, b}, func(i int, l emit.Lanes) {
		x, y := YMM(), YMM()
		off := 32 * i
		l.Load(emit.At(a).Offset(off), x)
		l.Load(emit.At(b).Offset(off), y)
		VFMADD231PS(x, y, sums[i])
	})
	emit.Result(total(sums))
	emit.End()

	emit.Begin("avx2Axpy", "func(y []float32, a float32, x []float32)", "is Set.Axpy.")
	f := emit.Broadcast("a")
	e.update(func(x, y reg.VecVirtual) { VFMADD231PS(f, x, y) })

	emit.Begin("avx2Add", "func(y, x []float32)", "is Set.Add.")
	e.update(func(x, y reg.VecVirtual) { VADDPS(x, y, y) })

	emit.Begin("avx2Scale", "func(y []float32, a float32)", "is Set.Scale.")
	f = emit.Broadcast("a")
	y := emit.Base("y")
	e.loop.Each("scale", emit.Len("y"), []reg.GPVirtual{y}, func(l emit.Lanes) {
		v := YMM()
		l.Load(emit.At(y), v)
		VMULPS(f, v, v)
		l.Store(v, emit.At(y))
	})
	emit.End()
}

// update emits a loop that changes y in place by x.
func (e *emitter) update(op func(x, y reg.VecVirtual)) {
	y, x := emit.Base("y"), emit.Base("x")
	e.loop.Each("update", emit.Len("y"), []reg.GPVirtual{y, x}, func(l emit.Lanes) {
		xv, yv := YMM(), YMM()
		l.Load(emit.At(x), xv)
		l.Load(emit.At(y), yv)
		op(xv, yv)
		l.Store(yv, emit.At(y))
	})
	emit.End()
}

// total adds all lanes of all sums.
func total(sums []reg.VecVirtual) reg.VecVirtual {
	for n := len(sums); n > 1; n /= 2 {
		for i := range n / 2 {
			VADDPS(sums[i+n/2], sums[i], sums[i])
		}
	}
	return emit.Sum(sums[0])
}
