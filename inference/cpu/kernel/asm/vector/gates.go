package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

// gates emits x·σ(z(x))·up with σ(z) = 1/(1+e⁻ᶻ): z = x is SiLU, and
// z = √(8/π)·(x + 0.044715x³) is GELU's tanh form, as (1+tanh u)/2 = σ(2u).
func (e *emitter) gates() {
	minus := emit.Fill32("sign", 0x80000000)
	e.gate("avx2SiLUMul", "is Set.SiLUMul.", func(x, z reg.VecVirtual) {
		VXORPS(minus, x, z)
	})
	k := -math.Sqrt(8 / math.Pi)
	linear, cubic := emit.FillF32("tanhLinear", float32(k)), emit.FillF32("tanhCubic", float32(k*0.044715))
	e.gate("avx2GELUTanhMul", "is Set.GELUTanhMul.", func(x, z reg.VecVirtual) {
		c := YMM()
		VMULPS(x, x, z)
		VMOVUPS(cubic, c)
		VFMADD213PS(linear, c, z)
		VMULPS(x, z, z)
	})
}

// gate emits one of them; minusZ writes −z(x).
func (e *emitter) gate(name, doc string, minusZ func(x, z reg.VecVirtual)) {
	emit.Begin(name, "func(dst, gate, up []float32)", doc)
	dst, gate, up := emit.Base("dst"), emit.Base("gate"), emit.Base("up")
	e.loop.Each("gate", emit.Len("gate"), []reg.GPVirtual{dst, gate, up}, func(l emit.Lanes) {
		x, u, z := YMM(), YMM(), YMM()
		l.Load(emit.At(gate), x)
		l.Load(emit.At(up), u)
		minusZ(x, z)
		e.exp.Of(z)
		VADDPS(e.exp.One(), z, z)
		VDIVPS(z, x, x)
		VMULPS(u, x, x)
		l.Store(x, emit.At(dst))
	})
	emit.End()
}

// gelu emits 0.5x(1+erf(x/√2)) = max(x,0) − a·erfc(a/√2)/2 with a = |x|, and
// erfc(y) ≈ (a₁t + … + a₅t⁵)·e^(−y²), t = 1/(1+py), by Abramowitz and Stegun
// 7.1.26, whose error is at most 1.5e-7: GELU is off by at most 0.75e-7·|x| and
// rounding. a stops at 20, where erfc vanishes, so that infinity gives infinity.
func (e *emitter) gelu() {
	end, scale := emit.FillF32("geluEnd", 20), emit.FillF32("geluP", float32(0.3275911/math.Sqrt2))
	half, minusHalf := emit.FillF32("geluHalf", 0.5), emit.FillF32("geluMinusHalf", -0.5)
	var poly [5]Mem
	for i, v := range [5]float32{1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592} {
		poly[i] = emit.FillF32("geluPoly"+string(rune('0'+i)), v)
	}
	emit.Begin("avx2GELU", "func(x []float32)", "is Set.GELU.")
	p := emit.Base("x")
	e.loop.Each("gelu", emit.Len("x"), []reg.GPVirtual{p}, func(l emit.Lanes) {
		x, a, t, h, y := YMM(), YMM(), YMM(), YMM(), YMM()
		l.Load(emit.At(p), x)
		VANDPS(e.abs, x, a)
		VMOVUPS(end, t)
		VMINPS(a, t, a)
		VMULPS(scale, a, t)
		VADDPS(e.exp.One(), t, t)
		VMOVUPS(e.exp.One(), h)
		VDIVPS(t, h, t)
		VMOVUPS(poly[0], h)
		for _, k := range poly[1:] {
			VFMADD213PS(k, t, h)
		}
		VMULPS(t, h, h)
		VMULPS(minusHalf, a, y)
		VMULPS(a, y, y)
		e.exp.OfNegative(y)
		VMULPS(y, h, h)
		VMULPS(half, a, a)
		VXORPS(y, y, y)
		VMAXPS(x, y, x) // NaN stays: the second source wins
		VFNMADD231PS(a, h, x)
		l.Store(x, emit.At(p))
	})
	emit.End()
}
