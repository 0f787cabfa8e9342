package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

func (e *emitter) softmax() {
	minusInf := emit.Fill32("softmaxMinusInf", 0xff800000)
	emit.Begin("avx2Softmax", "func(x []float32)", "is Set.Softmax.")
	top, fill, sum := YMM(), YMM(), YMM()
	VMOVUPS(minusInf, top)
	VMOVUPS(minusInf, fill)
	x := emit.Base("x")
	e.loop.Each("max", emit.Len("x"), []reg.GPVirtual{x}, func(l emit.Lanes) {
		v := YMM()
		l.Load(emit.At(x), v)
		l.KeepOr(v, fill)
		VMAXPS(v, top, top)
	})
	VBROADCASTSS(emit.Max(top), top)

	emit.Zero(sum)
	x = emit.Base("x")
	e.loop.Each("exp", emit.Len("x"), []reg.GPVirtual{x}, func(l emit.Lanes) {
		v := YMM()
		l.Load(emit.At(x), v)
		VSUBPS(top, v, v)
		e.exp.OfNegative(v)
		l.Keep(v)
		VADDPS(v, sum, sum)
		l.Store(v, emit.At(x))
	})
	inv := emit.Sum(sum)
	VDIVSS(inv, e.one().AsX(), inv)
	f := YMM()
	VBROADCASTSS(inv, f)
	x = emit.Base("x")
	e.loop.Each("scale", emit.Len("x"), []reg.GPVirtual{x}, func(l emit.Lanes) {
		v := YMM()
		l.Load(emit.At(x), v)
		VMULPS(f, v, v)
		l.Store(v, emit.At(x))
	})
	emit.End()
}
