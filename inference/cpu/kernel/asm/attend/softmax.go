package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

// softmax turns scores into weights relative to the new maximum of each query:
// first all maxima, then all factors, then all weights, so that many rows of one
// short chain are in flight rather than few of a long one.
func (t *tile) softmax() {
	t.mask()
	rows := GP64()
	IMUL3Q(Imm(uint64(t.queries)), emit.Ptr("groups"), rows)
	t.maxima(rows)

	factors, n := t.local(shrink), GP64()
	MOVQ(rows, n)
	Label("factors")
	f := t.width.New()
	VMOVUPS(emit.At(factors), f)
	t.exp.OfNegative(f)
	VMOVUPS(f, emit.At(factors))
	ADDQ(Imm(uint64(t.width.Bytes())), factors)
	SUBQ(Imm(uint64(t.width)), n)
	JG(LabelRef("factors"))

	t.weights(rows)
}

// mask finds which keys are seen. The window slides over a table: from from words
// before its ones begin, and to words before they end.
func (t *tile) mask() {
	masks, fills := t.local(masks), t.local(fills)
	lower, upper := GP64(), GP64()
	LEAQ(t.window.Offset(4*chunkKeys), lower)
	LEAQ(t.window.Offset(8*chunkKeys), upper)
	n := emit.Ptr("from")
	SHLQ(Imm(2), n)
	SUBQ(n, lower)
	MOVQ(emit.Arg("to"), n)
	SHLQ(Imm(2), n)
	SUBQ(n, upper)
	for at := 0; at < scoreRow; at += t.width.Bytes() {
		m, f := t.width.New(), t.width.New()
		VMOVUPS(Mem{Base: lower, Disp: at}, m)
		VANDPS(Mem{Base: upper, Disp: at}, m, m)
		VANDNPS(t.minusInf, m, f)
		VMOVUPS(m, Mem{Base: masks, Disp: at})
		VMOVUPS(f, Mem{Base: fills, Disp: at})
	}
}

// maxima scales the scores, puts −∞ where no key is seen, moves every maximum on,
// and leaves in shrink the old less the new one.
func (t *tile) maxima(rows reg.GPVirtual) {
	st, at, diff, count := emit.Ptr("st"), t.local(scores), t.local(shrink), GP64()
	masks, fills := t.local(masks), t.local(fills)
	MOVQ(rows, count)
	scale := t.width.New()
	VBROADCASTSS(emit.Arg("scale"), scale)
	Label("maxima")
	tops, old := t.width.News(2), XMM()
	for h := range chunkKeys / int(t.width) {
		disp, s := t.width.Bytes()*h, t.width.New()
		part := Mem{Base: at, Disp: disp}
		VMULPS(part, scale, s)
		VANDPS(Mem{Base: masks, Disp: disp}, s, s)
		VORPS(Mem{Base: fills, Disp: disp}, s, s)
		VMOVUPS(s, part)
		if h < len(tops) {
			VMOVAPS(s, tops[h])
		} else {
			VMAXPS(tops[h%2], s, tops[h%2])
		}
	}
	VMAXPS(tops[0], tops[1], tops[0])
	x := emit.Max(t.half(tops[0], VMAXPS))
	VMOVSS(emit.At(st), old)
	VMAXSS(old, x, x)
	VMOVSS(x, emit.At(st))
	VSUBSS(x, old, old)
	VMOVSS(old, emit.At(diff))
	ADDQ(Imm(8), st)
	ADDQ(U32(scoreRow), at)
	ADDQ(Imm(4), diff)
	DECQ(count)
	JNZ(LabelRef("maxima"))
}

// half joins the halves of sixteen lanes; eight are left as they are.
func (t *tile) half(v reg.VecVirtual, join func(...Op)) reg.VecVirtual {
	if t.width == emit.Eight {
		return v
	}
	high := YMM()
	VEXTRACTF64X4(Imm(1), v, high)
	join(high, v.AsY(), high)
	return high
}

// weights replaces scores by their exponentials, nothing where no key is seen, and
// moves every sum on. A sum is that of two pairs of blocks, then of the halves of
// sixteen lanes, whatever the width.
func (t *tile) weights(rows reg.GPVirtual) {
	st, at, factor := emit.Ptr("st"), t.local(scores), t.local(shrink)
	masks, exp := t.local(masks), t.exp
	if t.width == emit.Sixteen {
		exp = t.exp.Held()
	}
	Label("weights")
	top, f := t.width.New(), XMM()
	VBROADCASTSS(emit.At(st), top)
	halves := make([]reg.VecVirtual, t.vectors())
	for h := range halves {
		pairs := [2]reg.VecVirtual{}
		for b := range chunkKeys / blockKeys {
			disp, s := 4*blockKeys*b+t.width.Bytes()*h, t.width.New()
			VMOVUPS(Mem{Base: at, Disp: disp}, s)
			VSUBPS(top, s, s)
			exp.OfNegative(s)
			VANDPS(Mem{Base: masks, Disp: disp}, s, s)
			VMOVUPS(s, Mem{Base: at, Disp: disp})
			if b%2 == 0 {
				pairs[b/2] = s
			} else {
				VADDPS(s, pairs[b/2], pairs[b/2])
			}
		}
		VADDPS(pairs[1], pairs[0], pairs[0])
		halves[h] = pairs[0]
	}
	if len(halves) == 2 {
		VADDPS(halves[1], halves[0], halves[0])
	}
	sum := emit.Sum(t.half(halves[0], VADDPS))
	VMOVSS(emit.At(factor), f)
	VFMADD231SS(emit.At(st).Offset(4), f, sum)
	VMOVSS(sum, emit.At(st).Offset(4))
	ADDQ(Imm(8), st)
	ADDQ(U32(scoreRow), at)
	ADDQ(Imm(4), factor)
	DECQ(rows)
	JNZ(LabelRef("weights"))
}
