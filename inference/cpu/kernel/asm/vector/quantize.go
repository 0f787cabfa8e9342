package main

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

// quantize emits portableQuantize of the kernel package, bit for bit.
func (e *emitter) quantize() {
	top := emit.FillF32("quantTop", 127)
	least := emit.FillF32("quantLeast", 127/math.MaxFloat32)
	finite := emit.FillF32("quantFinite", math.MaxFloat32)

	emit.Begin("avx2Quantize", "func(q *int8, d, s *float32, o *int32, x *float32, blocks int)", "quantises blocks of 32 values.")
	q, d, s, o := emit.Ptr("q"), emit.Ptr("d"), emit.Ptr("s"), emit.Ptr("o")
	x, n := emit.Ptr("x"), emit.Ptr("blocks")
	magnitude, shuffle := YMM(), YMM()
	VMOVUPS(e.abs, magnitude)
	VMOVDQU(e.order, shuffle)
	Label("block")
	v := emit.YMMs(4)
	for i := range v {
		VMOVUPS(Mem{Base: x, Disp: 32 * i}, v[i])
	}
	amax := largest(v, magnitude)

	inv, ok, upper := YMM(), YMM(), YMM()
	VCMPPS(Imm(0x1e), least, amax, ok)     // above the least, false for NaN
	VCMPPS(Imm(0x12), finite, amax, upper) // and finite
	VANDPS(upper, ok, ok)
	VMOVUPS(top, inv)
	VDIVPS(amax, inv, inv)
	VANDPS(ok, inv, inv)
	for i := range v {
		VMULPS(inv, v[i], v[i])
		VCVTPS2DQ(v[i], v[i])
		VPAND(ok, v[i], v[i])
	}
	scale := XMM()
	VMOVUPS(top.Offset(0), scale)
	VDIVSS(scale, amax.AsX(), scale)
	VMOVSS(scale, emit.At(d))
	sum, real := intSum(v), XMM()
	VCVTDQ2PS(sum, real)
	VMULSS(scale, real, scale)
	VMOVSS(scale, emit.At(s))
	VPSLLD(Imm(7), sum, sum)
	VPXOR(real, real, real)
	VPSUBD(sum, real, sum)
	VMOVD(sum, emit.At(o))

	pack(v, shuffle)
	VMOVDQU(v[0], emit.At(q))
	ADDQ(Imm(32), q)
	ADDQ(Imm(4), d)
	ADDQ(Imm(4), s)
	ADDQ(Imm(4), o)
	ADDQ(U32(128), x)
	DECQ(n)
	JNZ(LabelRef("block"))
	emit.End()
}

// newOrder declares what undoes the lane order of two packs.
func newOrder() Mem {
	order := GLOBL("packOrder", 8|16)
	for i, v := range []uint32{0, 4, 1, 5, 2, 6, 3, 7} {
		DATA(4*i, U32(v))
	}
	return order
}

// pack leaves the 32 words of v as bytes in v[0].
func pack(v []reg.VecVirtual, shuffle reg.VecVirtual) {
	VPACKSSDW(v[1], v[0], v[0])
	VPACKSSDW(v[3], v[2], v[2])
	VPACKSSWB(v[2], v[0], v[0])
	VPERMD(v[0], shuffle, v[0])
}

// largest is the largest magnitude in every lane. Magnitudes compare as
// integers, which puts NaN above infinity instead of losing it.
func largest(v []reg.VecVirtual, magnitude reg.VecVirtual) reg.VecVirtual {
	m := emit.YMMs(len(v))
	for i := range v {
		VPAND(magnitude, v[i], m[i])
	}
	VPMAXSD(m[1], m[0], m[0])
	VPMAXSD(m[3], m[2], m[2])
	VPMAXSD(m[2], m[0], m[0])
	t := YMM()
	VPERM2F128(Imm(1), m[0], m[0], t)
	VPMAXSD(t, m[0], m[0])
	for _, swap := range []uint64{0x4e, 0xb1} {
		VPSHUFD(Imm(swap), m[0], t)
		VPMAXSD(t, m[0], m[0])
	}
	return m[0]
}

// intSum is the sum of all lanes.
func intSum(v []reg.VecVirtual) reg.VecVirtual {
	s, t, x := YMM(), YMM(), XMM()
	VPADDD(v[1], v[0], s)
	VPADDD(v[3], v[2], t)
	VPADDD(t, s, s)
	VEXTRACTI128(Imm(1), s, x)
	VPADDD(s.AsX(), x, x)
	VPHADDD(x, x, x)
	VPHADDD(x, x, x)
	return x
}
