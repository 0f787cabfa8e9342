package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

// gather is acc = acc·shrink + Σ weight·v, rows in order.
func (t *tile) gather() {
	acc, groups := emit.Ptr("acc"), emit.Ptr("groups")
	scores, shrink := local(t.scores), local(t.shrink)
	Label("gather")
	v, n := emit.Ptr("v"), GP64()
	MOVQ(t.dim, n)
	g := group{emit.NewRows(acc, t.qrow, t.queries), v, scores, shrink}
	SUBQ(Imm(uint64(8*t.wide)), n)
	JL(LabelRef("valuesDone"))
	Label("values")
	t.values("valuesRow", g, t.wide)
	SUBQ(Imm(uint64(8*t.wide)), n)
	JGE(LabelRef("values"))
	Label("valuesDone")
	ADDQ(Imm(uint64(8*t.wide)), n)
	JZ(LabelRef("gathered"))
	Label("value")
	t.values("valueRow", g, 1)
	SUBQ(Imm(8), n)
	JNZ(LabelRef("value"))
	Label("gathered")
	for range t.queries - 1 { // acc stands at the end of its first row
		ADDQ(t.qrow, acc)
	}
	ADDQ(U32(uint32(t.queries*scoreRow)), scores)
	ADDQ(Imm(uint64(4*t.queries)), shrink)
	DECQ(groups)
	JNZ(LabelRef("gather"))
}

// group is where gather stands: accumulator rows, values, weights and factors.
type group struct {
	acc               emit.Rows
	v, scores, shrink reg.GPVirtual
}

// values does wide vectors of the dimension and moves acc and v behind them.
func (t *tile) values(label string, g group, wide int) {
	sums := emit.YMMs(t.queries * wide)
	for i := range t.queries {
		f := YMM()
		VBROADCASTSS(emit.At(g.shrink).Offset(4*i), f)
		for c := range wide {
			VMULPS(g.acc.At(i, 32*c), f, sums[i*wide+c])
		}
	}
	row, weights, n := GP64(), GP64(), emit.Ptr("n")
	MOVQ(g.v, row)
	MOVQ(g.scores, weights)
	Label(label)
	p := emit.YMMs(t.queries)
	for i := range p {
		VBROADCASTSS(Mem{Base: weights, Disp: scoreRow * i}, p[i])
	}
	for c := range wide {
		x := YMM()
		t.src.load(Mem{Base: row, Disp: t.src.vec() * c}, x)
		for i := range p {
			VFMADD231PS(p[i], x, sums[i*wide+c])
		}
	}
	ADDQ(Imm(4), weights)
	ADDQ(t.row, row)
	DECQ(n)
	JNZ(LabelRef(label))
	for i := range t.queries {
		for c := range wide {
			VMOVUPS(sums[i*wide+c], g.acc.At(i, 32*c))
		}
	}
	ADDQ(U32(uint32(32*wide)), g.acc.Base)
	ADDQ(U32(uint32(t.src.vec()*wide)), g.v)
}
