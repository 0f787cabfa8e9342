package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

func (e *emitter) norms() {
	emit.Begin("avx2RMSNorm", "func(dst, x, w []float32, eps float32)", "is Set.RMSNorm.")
	r := rsqrtMean(e.reduce("squares", nil, func(v, sum reg.VecVirtual) { VFMADD231PS(v, v, sum) }), e.one())
	dst, x, w := emit.Base("dst"), emit.Base("x"), emit.Base("w")
	e.loop.Each("norm", emit.Len("x"), []reg.GPVirtual{dst, x, w}, func(l emit.Lanes) {
		v, wv := YMM(), YMM()
		l.Load(emit.At(x), v)
		l.Load(emit.At(w), wv)
		VMULPS(r, v, v)
		VMULPS(wv, v, v)
		l.Store(v, emit.At(dst))
	})
	emit.End()
	e.layerNorm()
}

func (e *emitter) layerNorm() {
	emit.Begin("avx2LayerNorm", "func(dst, x, w, b []float32, eps float32)", "is Set.LayerNorm.")
	mean := YMM()
	sum := e.reduce("sum", nil, func(v, sum reg.VecVirtual) { VADDPS(v, sum, sum) })
	VDIVSS(length(), sum, sum)
	VBROADCASTSS(sum, mean)
	r := rsqrtMean(e.reduce("squares", mean, func(v, sum reg.VecVirtual) { VFMADD231PS(v, v, sum) }), e.one())
	dst, x, w, b := emit.Base("dst"), emit.Base("x"), emit.Base("w"), emit.Base("b")
	e.loop.Each("norm", emit.Len("x"), []reg.GPVirtual{dst, x, w, b}, func(l emit.Lanes) {
		v, wv, bv := YMM(), YMM(), YMM()
		l.Load(emit.At(x), v)
		l.Load(emit.At(w), wv)
		l.Load(emit.At(b), bv)
		VSUBPS(mean, v, v)
		VMULPS(r, v, v)
		VFMADD213PS(bv, wv, v)
		l.Store(v, emit.At(dst))
	})
	emit.End()
}

// reduce sums what add makes of the elements of x, less mean unless nil.
func (e *emitter) reduce(name string, mean reg.VecVirtual, add func(v, sum reg.VecVirtual)) reg.VecVirtual {
	x := emit.Base("x")
	sums := emit.YMMs(unroll)
	emit.Zero(sums...)
	e.loop.Unrolled(name, unroll, emit.Len("x"), []reg.GPVirtual{x}, func(i int, l emit.Lanes) {
		v := YMM()
		l.Load(emit.At(x).Offset(32*i), v)
		if mean != nil {
			VSUBPS(mean, v, v)
			l.Keep(v)
		}
		add(v, sums[i])
	})
	return total(sums)
}

// length is the number of elements of x as a float.
func length() reg.VecVirtual {
	n := XMM()
	VXORPS(n, n, n)
	VCVTSI2SSQ(emit.Len("x"), n, n)
	return n
}

// rsqrtMean is 1/sqrt(sum/len(x) + eps) in every lane.
func rsqrtMean(sum, one reg.VecVirtual) reg.VecVirtual {
	r := YMM()
	VDIVSS(length(), sum, sum)
	VADDSS(emit.Arg("eps"), sum, sum)
	VSQRTSS(sum, sum, sum)
	VDIVSS(sum, one.AsX(), sum)
	VBROADCASTSS(sum, r)
	return r
}

// one is a register of ones.
func (e *emitter) one() reg.VecVirtual {
	v := YMM()
	VMOVUPS(e.exp.One(), v)
	return v
}
