package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

func (e *emitter) rope() {
	emit.Begin("avx2RopePairs", "func(x, cos, sin *float32, n int)", "rotates n × 4 neighbouring pairs.")
	x, cos, sin := emit.Ptr("x"), emit.Ptr("cos"), emit.Ptr("sin")
	vectors([]step{{x, 32}, {cos, 16}, {sin, 16}}, func() {
		c, s, v, swapped := twice(cos), twice(sin), YMM(), YMM()
		VMOVUPS(emit.At(x), v)
		VPERMILPS(Imm(0xb1), v, swapped)
		VMULPS(swapped, s, s)
		VFMADDSUB213PS(s, c, v) // even: a·cos − b·sin, odd: b·cos + a·sin
		VMOVUPS(v, emit.At(x))
	})
	emit.End()

	emit.Begin("avx2RopeHalves", "func(x, cos, sin []float32)", "is Set.RopeHalves.")
	a, cs, sn, n := emit.Base("x"), emit.Base("cos"), emit.Base("sin"), emit.Len("x")
	SHRQ(Imm(1), n)
	b := GP64()
	LEAQ(Mem{Base: a, Index: n, Scale: 4}, b)
	e.loop.Each("halves", n, []reg.GPVirtual{a, b, cs, sn}, func(l emit.Lanes) {
		v, w, c, s, t := YMM(), YMM(), YMM(), YMM(), YMM()
		l.Load(emit.At(a), v)
		l.Load(emit.At(b), w)
		l.Load(emit.At(cs), c)
		l.Load(emit.At(sn), s)
		VMULPS(w, s, t)
		VMULPS(v, s, s)
		VFMSUB213PS(t, c, v)
		VFMADD213PS(s, c, w)
		l.Store(v, emit.At(a))
		l.Store(w, emit.At(b))
	})
	emit.End()
}

// twice loads four floats, each into two neighbouring lanes.
func twice(p reg.GPVirtual) reg.VecVirtual {
	v := YMM()
	VPMOVZXDQ(emit.At(p), v)
	VMOVSLDUP(v, v)
	return v
}
