package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

const floatSignature = "func(dst *float32, stride int, x *float32, xstride int, w *byte, cols int)"

// weight is an unquantised weight type: the bytes of eight values and how they
// become float32.
type weight struct {
	name string
	size int
	load func(m Mem, v reg.VecVirtual)
}

func floats() {
	for _, w := range []weight{
		{"F32", 32, func(m Mem, v reg.VecVirtual) { VMOVUPS(m, v) }},
		{"F16", 16, func(m Mem, v reg.VecVirtual) { VCVTPH2PS(m, v) }},
		{"BF16", 16, func(m Mem, v reg.VecVirtual) { VPMOVZXWD(m, v); VPSLLD(Imm(16), v, v) }},
	} {
		for _, rows := range []int{1, 2, 4} {
			for _, strips := range []int{1, 2} {
				floatTile(w, rows, strips)
			}
		}
	}
}

// floatTile emits rows × (8·strips) outputs: each is a chain of fused
// multiply-adds in column order, so all tiles give the same bits.
func floatTile(wt weight, rows, strips int) {
	emit.Begin(fmt.Sprintf("avx2%sx%dx%d", wt.name, rows, strips), floatSignature,
		fmt.Sprintf("multiplies %d float rows by %d strips of %s weights.", rows, strips, wt.name))
	dst, stride := emit.Ptr("dst"), emit.Ptr("stride")
	base, xstride, w, cols := emit.Ptr("x"), emit.Ptr("xstride"), emit.Ptr("w"), emit.Ptr("cols")
	SHLQ(Imm(2), stride)
	SHLQ(Imm(2), xstride)
	x, out := emit.NewRows(base, xstride, rows), emit.NewRows(dst, stride, rows)
	next := GP64() // bytes from one strip to the next
	IMUL3Q(Imm(uint64(wt.size)), cols, next)
	acc := emit.YMMs(rows * strips)
	emit.Zero(acc...)

	step := func(u int) {
		v := emit.YMMs(strips)
		for s := range v {
			m := Mem{Base: w, Disp: wt.size * u}
			if s > 0 {
				m.Index, m.Scale = next, 1
			}
			wt.load(m, v[s])
		}
		for r := range rows {
			a := YMM()
			VBROADCASTSS(x.At(r, 4*u), a)
			for s := range v {
				VFMADD231PS(a, v[s], acc[r*strips+s])
			}
		}
	}
	const unroll = 4
	loop := func(name string, n int) {
		Label(name)
		for u := range n {
			step(u)
		}
		ADDQ(Imm(uint64(4*n)), base)
		ADDQ(Imm(uint64(wt.size*n)), w)
		SUBQ(Imm(uint64(n)), cols)
	}
	SUBQ(Imm(unroll), cols)
	JL(LabelRef("tail"))
	loop("four", unroll)
	JGE(LabelRef("four"))
	Label("tail")
	ADDQ(Imm(unroll), cols)
	JZ(LabelRef("done"))
	loop("one", 1)
	JNZ(LabelRef("one"))
	Label("done")
	for i, a := range acc {
		VMOVUPS(a, out.At(i/strips, 32*(i%strips)))
	}
	emit.End()
}
