package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

// maxRows is the constant attendMax of the kernel package.
const maxRows = 16

// tile emits one step for groups of query rows over the n rows of a block. All
// scores come before all softmaxes, and those before all sums: the long chains
// of the softmax then overlap with each other and with the products around them.
type tile struct {
	*emitter
	src     source
	queries int // rows of a group
	wide    int

	scores Mem           // maxRows × attendRows floats: scores, then weights
	shrink Mem           // maxRows factors for what was accumulated before
	row    reg.GPVirtual // bytes from a key to the next
	dim    reg.GPVirtual // head dimension
	qrow   reg.GPVirtual // bytes from a query to the next
}

// scoreRow is the bytes of the scores of one query.
const scoreRow = 4 * attendRows

func (t *tile) generate() {
	emit.Begin(fmt.Sprintf("avx2Attend%sx%d", t.src.name, t.queries),
		fmt.Sprintf("func(st, acc, q *float32, k, v *%s, groups, n, stride, dim int, scale float32)", t.src.goType),
		fmt.Sprintf("takes groups of %d query rows, %d rows at most, one block further.", t.queries, maxRows))
	t.scores = AllocLocal(maxRows * scoreRow)
	t.shrink = AllocLocal(4 * maxRows)
	t.row, t.dim, t.qrow = emit.Ptr("stride"), emit.Ptr("dim"), GP64()
	SHLQ(Imm(uint64(t.src.shift)), t.row)
	MOVQ(t.dim, t.qrow)
	SHLQ(Imm(2), t.qrow)

	t.multiply()
	t.softmax()
	t.gather()
	emit.End()
}

// local is a register with the address of a stack slot.
func local(m Mem) reg.GPVirtual {
	r := GP64()
	LEAQ(m, r)
	return r
}

// multiply fills scores with q·k: wide keys at a time, then one by one. Every
// product is eight partial sums over the dimension, folded in the same order.
func (t *tile) multiply() {
	q, scores, groups := emit.Ptr("q"), local(t.scores), emit.Ptr("groups")
	Label("multiply")
	k, n, out := emit.Ptr("k"), emit.Ptr("n"), GP64()
	MOVQ(scores, out)
	SUBQ(Imm(uint64(t.wide)), n)
	JL(LabelRef("keysDone"))
	Label("keys")
	t.keys("keysDim", q, k, out, t.wide)
	SUBQ(Imm(uint64(t.wide)), n)
	JGE(LabelRef("keys"))
	Label("keysDone")
	ADDQ(Imm(uint64(t.wide)), n)
	JZ(LabelRef("multiplied"))
	Label("key")
	t.keys("keyDim", q, k, out, 1)
	DECQ(n)
	JNZ(LabelRef("key"))
	Label("multiplied")
	for range t.queries {
		ADDQ(t.qrow, q)
	}
	ADDQ(U32(uint32(t.queries*scoreRow)), scores)
	DECQ(groups)
	JNZ(LabelRef("multiply"))
}

// keys multiplies a group of queries from first on by wide keys and moves k and out behind them.
func (t *tile) keys(label string, first, k, out reg.GPVirtual, wide int) {
	q, n := GP64(), GP64()
	MOVQ(first, q)
	MOVQ(t.dim, n)
	queries := emit.NewRows(q, t.qrow, t.queries)
	groups := t.keyRows(k, wide)
	sums := emit.YMMs(t.queries * wide)
	emit.Zero(sums...)

	Label(label)
	qv := emit.YMMs(t.queries)
	for i := range qv {
		VMOVUPS(queries.At(i, 0), qv[i])
	}
	for j := range wide {
		kv := YMM()
		t.src.load(groups[j/4].At(j%4, 0), kv)
		for i := range qv {
			VFMADD231PS(qv[i], kv, sums[i*wide+j])
		}
	}
	ADDQ(Imm(32), q)
	for _, g := range groups {
		ADDQ(Imm(uint64(t.src.vec())), g.Base)
	}
	SUBQ(Imm(8), n)
	JNZ(LabelRef(label))

	for i := range t.queries {
		store(sums[i*wide:(i+1)*wide], Mem{Base: out, Disp: scoreRow * i})
	}
	ADDQ(Imm(uint64(4*wide)), out)
	for range wide {
		ADDQ(t.row, k)
	}
}

// keyRows addresses wide rows from k on, in groups of four with own pointers.
func (t *tile) keyRows(k reg.GPVirtual, wide int) []emit.Rows {
	base := GP64()
	MOVQ(k, base)
	groups := []emit.Rows{emit.NewRows(base, t.row, min(wide, 4))}
	if wide > 4 {
		next := groups[0]
		next.Base = GP64()
		LEAQ(Mem{Base: base, Index: t.row, Scale: 4}, next.Base)
		groups = append(groups, next)
	}
	return groups
}

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
