package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

// softmax turns scores into weights relative to the new maximum of each query and
// block: first all maxima, then all factors, then all weights, so that many rows of
// one short chain are in flight rather than few of a long one.
func (t *tile) softmax() {
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
	SUBQ(Imm(uint64(t.width/blocks)), n)
	JG(LabelRef("factors"))

	t.weights(rows)
}

// maxima scales the scores, puts −∞ behind the last row of each run, moves every
// maximum on, and leaves in shrink the old less the new one.
func (t *tile) maxima(rows reg.GPVirtual) {
	run, runs := emit.Ptr("runs"), emit.Ptr("count")
	first, firstTop := t.local(scores), t.local(tops)
	scale, fill := t.width.New(), t.width.New()
	VBROADCASTSS(emit.Arg("scale"), scale)
	VMOVUPS(t.minusInf, fill)
	Label("maximaRun")
	keep := t.keep(emit.At(run).Offset(8), fill)
	st, at, top, count := emit.Ptr("st"), GP64(), GP64(), GP64()
	MOVQ(first, at)
	MOVQ(firstTop, top)
	MOVQ(rows, count)
	Label("maxima")
	s, old := t.width.News(t.vectors()), XMM()
	for h := range s {
		part := emit.At(at).Offset(t.width.Bytes() * h)
		VMULPS(part, scale, s[h])
		keep(h, s[h])
		VMOVUPS(s[h], part)
	}
	x := emit.Max(t.half(s, VMAXPS))
	VMOVSS(emit.At(st), old)
	VMAXSS(old, x, x)
	VMOVSS(x, emit.At(st))
	VMOVSS(x, emit.At(top))
	VSUBSS(x, old, old)
	VMOVSS(old, emit.At(top).Offset(shrink-tops))
	ADDQ(Imm(8), st)
	ADDQ(U32(scoreRow), at)
	ADDQ(Imm(factorRow), top)
	DECQ(count)
	JNZ(LabelRef("maxima"))
	ADDQ(Imm(runBytes), run)
	ADDQ(Imm(scoreBlock), first)
	ADDQ(Imm(4), firstTop)
	DECQ(runs)
	JNZ(LabelRef("maximaRun"))
}

// keep puts fill behind the first n scores of a block, vector h of them in v.
func (t *tile) keep(n Mem, fill reg.VecVirtual) func(h int, v reg.VecVirtual) {
	count := t.width.New()
	VPBROADCASTD(n, count)
	if t.width == emit.Sixteen {
		mask := K()
		VPCMPGTD(t.iota, count, mask)
		return func(_ int, v reg.VecVirtual) { VBLENDMPS(v, fill, mask, v) }
	}
	masks := t.width.News(t.vectors())
	for h := range masks {
		VPCMPGTD(t.iota.Offset(t.width.Bytes()*h), count, masks[h])
	}
	return func(h int, v reg.VecVirtual) { VBLENDVPS(masks[h], v, fill, v) }
}

// half joins the two vectors of a block's scores, or the halves of the one.
func (t *tile) half(v []reg.VecVirtual, join func(...Op)) reg.VecVirtual {
	x := YMM()
	if len(v) == 1 {
		join(upper(v[0]), v[0].AsY(), x)
	} else {
		join(v[1], v[0], x)
	}
	return x
}

// weights replaces scores by their exponentials and moves every sum on.
func (t *tile) weights(rows reg.GPVirtual) {
	runs, exp := emit.Ptr("count"), t.exp
	first, firstTop := t.local(scores), t.local(tops)
	if t.width == emit.Sixteen {
		exp = t.exp.Held()
	}
	Label("weightsRun")
	st, at, top, count := emit.Ptr("st"), GP64(), GP64(), GP64()
	MOVQ(first, at)
	MOVQ(firstTop, top)
	MOVQ(rows, count)
	Label("weights")
	s, x, f := t.width.News(t.vectors()), t.width.New(), XMM()
	VBROADCASTSS(emit.At(top), x)
	for h := range s {
		part := emit.At(at).Offset(t.width.Bytes() * h)
		VMOVUPS(part, s[h])
		VSUBPS(x, s[h], s[h])
		exp.OfNegative(s[h])
		VMOVUPS(s[h], part)
	}
	sum := emit.Sum(t.half(s, VADDPS))
	VMOVSS(emit.At(top).Offset(shrink-tops), f)
	VFMADD231SS(emit.At(st).Offset(4), f, sum)
	VMOVSS(sum, emit.At(st).Offset(4))
	ADDQ(Imm(8), st)
	ADDQ(U32(scoreRow), at)
	ADDQ(Imm(factorRow), top)
	DECQ(count)
	JNZ(LabelRef("weights"))
	ADDQ(Imm(scoreBlock), first)
	ADDQ(Imm(4), firstTop)
	DECQ(runs)
	JNZ(LabelRef("weightsRun"))
}
