package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

// tile emits one step for some query rows over the n rows of a block.
type tile struct {
	*emitter
	src     source
	queries int
	wide    int

	scores Mem           // queries × attendRows floats: scores, then weights
	shrink Mem           // a factor for what was accumulated before, each query
	row    reg.GPVirtual // bytes from a key to the next
	dim    reg.GPVirtual // head dimension
	qrow   reg.GPVirtual // bytes from a query to the next
}

func (t *tile) generate() {
	emit.Begin(fmt.Sprintf("avx2Attend%sx%d", t.src.name, t.queries),
		fmt.Sprintf("func(st, acc, q *float32, k, v *%s, n, stride, dim int, scale float32)", t.src.goType),
		fmt.Sprintf("takes %d query rows one block further.", t.queries))
	t.scores = AllocLocal(t.queries * attendRows * 4)
	t.shrink = AllocLocal(16)
	t.row, t.dim, t.qrow = emit.Ptr("stride"), emit.Ptr("dim"), GP64()
	SHLQ(Imm(uint64(t.src.shift)), t.row)
	MOVQ(t.dim, t.qrow)
	SHLQ(Imm(2), t.qrow)

	t.multiply()
	t.softmax()
	t.gather()
	emit.End()
}

// multiply fills scores with q·k: wide keys at a time, then one by one. Every
// product is eight partial sums over the dimension, folded in the same order.
func (t *tile) multiply() {
	k, n, out := emit.Ptr("k"), emit.Ptr("n"), GP64()
	LEAQ(t.scores, out)
	SUBQ(Imm(uint64(t.wide)), n)
	JL(LabelRef("keysDone"))
	Label("keys")
	t.keys("keysDim", k, out, t.wide)
	SUBQ(Imm(uint64(t.wide)), n)
	JGE(LabelRef("keys"))
	Label("keysDone")
	ADDQ(Imm(uint64(t.wide)), n)
	JZ(LabelRef("multiplied"))
	Label("key")
	t.keys("keyDim", k, out, 1)
	DECQ(n)
	JNZ(LabelRef("key"))
	Label("multiplied")
}

// keys multiplies all queries by wide keys and moves k and out behind them.
func (t *tile) keys(label string, k, out reg.GPVirtual, wide int) {
	q, n := emit.Ptr("q"), GP64()
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
		store(sums[i*wide:(i+1)*wide], Mem{Base: out, Disp: 4 * attendRows * i})
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

// store folds each vector to one float and writes them side by side.
func store(v []reg.VecVirtual, m Mem) {
	x := make([]reg.VecVirtual, len(v))
	for i := range v {
		x[i] = emit.Fold(v[i])
	}
	for at := 0; at < len(x); at += 4 {
		four := x[at:min(at+4, len(x))]
		out := m.Offset(4 * at)
		switch len(four) {
		case 1:
			VHADDPS(four[0], four[0], four[0])
			VHADDPS(four[0], four[0], four[0])
			VMOVSS(four[0], out)
		case 2:
			VHADDPS(four[1], four[0], four[0])
			VHADDPS(four[0], four[0], four[0])
			VMOVLPS(four[0], out)
		case 4:
			VHADDPS(four[1], four[0], four[0])
			VHADDPS(four[3], four[2], four[2])
			VHADDPS(four[2], four[0], four[0])
			VMOVUPS(four[0], out)
		}
	}
}

// softmax turns scores into weights relative to the new maximum of each query.
func (t *tile) softmax() {
	st := emit.Ptr("st")
	n, scale := YMM(), emit.Broadcast("scale")
	VPBROADCASTD(emit.Arg("n"), n)
	masks := emit.YMMs(2)
	for h := range masks {
		VPCMPGTD(t.iota.Offset(32*h), n, masks[h])
	}
	for i := range t.queries {
		t.softmaxRow(i, Mem{Base: st, Disp: 8 * i}, scale, masks)
	}
}

func (t *tile) softmaxRow(i int, st Mem, scale reg.VecVirtual, masks []reg.VecVirtual) {
	s, top, old, shrink := emit.YMMs(2), YMM(), XMM(), YMM()
	at := t.scores.Offset(4 * attendRows * i)
	for h := range s {
		fill := YMM()
		VMOVUPS(t.minusInf, fill)
		VMULPS(at.Offset(32*h), scale, s[h])
		VBLENDVPS(masks[h], s[h], fill, s[h])
	}
	VMAXPS(s[0], s[1], top)
	x := emit.Max(top)
	VMOVSS(st, old)
	VMAXSS(old, x, x)
	VMOVSS(x, st)
	VBROADCASTSS(x, top)

	// The maximum of most blocks is not a new one: e⁰ = 1 needs no work.
	same := fmt.Sprintf("same%d", i)
	VSUBSS(x, old, old)
	VBROADCASTSS(old, shrink)
	t.skipIfZero(old, same)
	t.exp.Of(shrink)
	JMP(LabelRef(same + "Join"))
	Label(same)
	VMOVUPS(t.exp.One(), shrink)
	Label(same + "Join")
	VMOVSS(shrink.AsX(), t.shrink.Offset(4*i))

	for h := range s {
		VSUBPS(top, s[h], s[h])
		t.exp.Of(s[h])
		VMOVUPS(s[h], at.Offset(32*h))
	}
	VADDPS(s[1], s[0], s[0])
	sum := emit.Sum(s[0])
	VFMADD231SS(st.Offset(4), shrink.AsX(), sum)
	VMOVSS(sum, st.Offset(4))
}

// skipIfZero jumps when the lowest lane is zero; NaN does not count as zero.
func (t *tile) skipIfZero(x reg.VecVirtual, label string) {
	bits := GP32()
	VMOVD(x, bits)
	TESTL(bits, bits)
	JZ(LabelRef(label))
}

// gather is acc = acc·shrink + Σ weight·v, rows in order.
func (t *tile) gather() {
	acc, v, n := emit.Ptr("acc"), emit.Ptr("v"), GP64()
	MOVQ(t.dim, n)
	rows := emit.NewRows(acc, t.qrow, t.queries)
	SUBQ(Imm(uint64(8*t.wide)), n)
	JL(LabelRef("valuesDone"))
	Label("values")
	t.values("valuesRow", rows, v, t.wide)
	SUBQ(Imm(uint64(8*t.wide)), n)
	JGE(LabelRef("values"))
	Label("valuesDone")
	ADDQ(Imm(uint64(8*t.wide)), n)
	JZ(LabelRef("gathered"))
	Label("value")
	t.values("valueRow", rows, v, 1)
	SUBQ(Imm(8), n)
	JNZ(LabelRef("value"))
	Label("gathered")
}

// values does wide vectors of the dimension and moves the pointers behind them.
func (t *tile) values(label string, acc emit.Rows, v reg.GPVirtual, wide int) {
	sums := emit.YMMs(t.queries * wide)
	for i := range t.queries {
		f := YMM()
		VBROADCASTSS(t.shrink.Offset(4*i), f)
		for c := range wide {
			VMULPS(acc.At(i, 32*c), f, sums[i*wide+c])
		}
	}
	row, weights, n := GP64(), GP64(), emit.Ptr("n")
	MOVQ(v, row)
	LEAQ(t.scores, weights)
	Label(label)
	p := emit.YMMs(t.queries)
	for i := range p {
		VBROADCASTSS(Mem{Base: weights, Disp: 4 * attendRows * i}, p[i])
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
			VMOVUPS(sums[i*wide+c], acc.At(i, 32*c))
		}
	}
	ADDQ(U32(uint32(32*wide)), acc.Base)
	ADDQ(U32(uint32(t.src.vec()*wide)), v)
}
