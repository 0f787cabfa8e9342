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
	rows := GP64()
	IMUL3Q(Imm(uint64(t.queries)), emit.Ptr("groups"), rows)
	t.maxima(rows)

	factors, n := local(t.shrink), GP64()
	MOVQ(rows, n)
	Label("factors")
	f := YMM()
	VMOVUPS(emit.At(factors), f)
	t.exp.OfNegative(f)
	VMOVUPS(f, emit.At(factors))
	ADDQ(Imm(32), factors)
	SUBQ(Imm(8), n)
	JG(LabelRef("factors"))

	t.weights(rows)
}

// maxima scales the scores, puts −∞ behind row n, moves every maximum on, and
// leaves in shrink the old less the new one.
func (t *tile) maxima(rows reg.GPVirtual) {
	st, at, diff, count := emit.Ptr("st"), local(t.scores), local(t.shrink), GP64()
	MOVQ(rows, count)
	n, scale, fill := YMM(), emit.Broadcast("scale"), YMM()
	VPBROADCASTD(emit.Arg("n"), n)
	VMOVUPS(t.minusInf, fill)
	masks := emit.YMMs(2)
	for h := range masks {
		VPCMPGTD(t.iota.Offset(32*h), n, masks[h])
	}
	Label("maxima")
	s, top, old := emit.YMMs(2), YMM(), XMM()
	for h := range s {
		part := emit.At(at).Offset(32 * h)
		VMULPS(part, scale, s[h])
		VBLENDVPS(masks[h], s[h], fill, s[h])
		VMOVUPS(s[h], part)
	}
	VMAXPS(s[0], s[1], top)
	x := emit.Max(top)
	VMOVSS(emit.At(st), old)
	VMAXSS(old, x, x)
	VMOVSS(x, emit.At(st))
	VSUBSS(x, old, old)
	VMOVSS(old, emit.At(diff))
	ADDQ(Imm(8), st)
	ADDQ(Imm(scoreRow), at)
	ADDQ(Imm(4), diff)
	DECQ(count)
	JNZ(LabelRef("maxima"))
}

// weights replaces scores by their exponentials and moves every sum on.
func (t *tile) weights(rows reg.GPVirtual) {
	st, at, factor := emit.Ptr("st"), local(t.scores), local(t.shrink)
	Label("weights")
	s, top, f := emit.YMMs(2), YMM(), XMM()
	VBROADCASTSS(emit.At(st), top)
	for h := range s {
		part := emit.At(at).Offset(32 * h)
		VMOVUPS(part, s[h])
		VSUBPS(top, s[h], s[h])
		t.exp.OfNegative(s[h])
		VMOVUPS(s[h], part)
	}
	VADDPS(s[1], s[0], s[0])
	sum := emit.Sum(s[0])
	VMOVSS(emit.At(factor), f)
	VFMADD231SS(emit.At(st).Offset(4), f, sum)
	VMOVSS(sum, emit.At(st).Offset(4))
	ADDQ(Imm(8), st)
	ADDQ(Imm(scoreRow), at)
	ADDQ(Imm(4), factor)
	DECQ(rows)
	JNZ(LabelRef("weights"))
}
