package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

// toQ8 emits portableToQ8 of the kernel package, bit for bit.
func (e *emitter) toQ8() {
	top := emit.FillF32("q8Top", 127)
	least := emit.FillF32("q8Least", 0x1p-100)
	finite := emit.FillF32("q8Finite", math.MaxFloat32)
	one := emit.FillF32("q8One", 1)
	half := emit.FillF32("q8Half", math.Nextafter32(0.5, 0))

	emit.Begin("avx2ToQ8", "func(q *int8, d *uint16, x *float32, blocks int)", "quantises blocks of 32 values.")
	q, d, x, n := emit.Ptr("q"), emit.Ptr("d"), emit.Ptr("x"), emit.Ptr("blocks")
	magnitude, shuffle := YMM(), YMM()
	VMOVUPS(e.abs, magnitude)
	VMOVDQU(e.order, shuffle)
	Label("block")
	v := emit.YMMs(4)
	for i := range v {
		VMOVUPS(Mem{Base: x, Disp: 32 * i}, v[i])
	}
	amax := largest(v, magnitude)

	ok, upper, scale, inverse := YMM(), YMM(), YMM(), YMM()
	VCMPPS(Imm(0x1e), least, amax, ok)     // above the least, false for NaN
	VCMPPS(Imm(0x12), finite, amax, upper) // and finite
	VANDPS(upper, ok, ok)
	VDIVPS(top, amax, scale)
	VMOVUPS(one, inverse)
	VDIVPS(scale, inverse, inverse)
	VANDPS(ok, inverse, inverse)
	stored := XMM()
	VCVTPS2PH(Imm(0), scale, stored) // to nearest even
	VPEXTRW(Imm(0), stored, emit.At(d))
	for i := range v {
		VMULPS(inverse, v[i], v[i])
		e.away(v[i], half)
		VPAND(ok, v[i], v[i])
	}
	pack(v, shuffle)
	VMOVDQU(v[0], emit.At(q))
	ADDQ(Imm(32), q)
	ADDQ(Imm(2), d)
	ADDQ(U32(128), x)
	DECQ(n)
	JNZ(LabelRef("block"))
	emit.End()
}

// fromQ8 emits portableFromQ8 of the kernel package.
func (e *emitter) fromQ8() {
	emit.Begin("avx2FromQ8", "func(dst *float32, q *int8, d *uint16, blocks int)", "widens blocks of 32 values.")
	dst, codes, scales, left := emit.Ptr("dst"), emit.Ptr("q"), emit.Ptr("d"), emit.Ptr("blocks")
	Label("block")
	f, h := YMM(), XMM()
	VPBROADCASTW(emit.At(scales), h)
	VCVTPH2PS(h, f)
	for i := range 4 {
		w := YMM()
		VPMOVSXBD(Mem{Base: codes, Disp: 8 * i}, w)
		VCVTDQ2PS(w, w)
		VMULPS(f, w, w)
		VMOVUPS(w, Mem{Base: dst, Disp: 32 * i})
	}
	ADDQ(U32(128), dst)
	ADDQ(Imm(32), codes)
	ADDQ(Imm(2), scales)
	DECQ(left)
	JNZ(LabelRef("block"))
	emit.End()
}

// fetchQ8 emits what brings the operands of fromQ8 into the cache.
func (e *emitter) fetchQ8() {
	emit.Begin("avx2FetchQ8", "func(q *int8, d *uint16, blocks int)", "brings blocks of 32 values into the cache.")
	codes, scales, left := emit.Ptr("q"), emit.Ptr("d"), emit.Ptr("blocks")
	Label("fetch") // two blocks fill a line of codes, and 32 a line of scales
	PREFETCHT0(emit.At(codes))
	PREFETCHT0(emit.At(scales))
	ADDQ(Imm(64), codes)
	ADDQ(Imm(4), scales)
	SUBQ(Imm(2), left)
	JG(LabelRef("fetch"))
	emit.End()
}

// away replaces v by the nearest integers, halves away from zero: half is the float
// just below ½, so that what lies just below a tie does not reach it in the sum.
func (e *emitter) away(v reg.VecVirtual, half Mem) {
	sign, m := YMM(), YMM()
	VMOVUPS(e.abs, m)
	VANDNPS(v, m, sign)
	VORPS(half, sign, sign)
	VADDPS(sign, v, v)
	VCVTTPS2DQ(v, v)
}
