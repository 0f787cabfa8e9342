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

// keys multiplies a group of queries, from first on, by wide keys and moves k and
// out behind them.
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
