package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

// multiply fills scores with q·k: wide keys at a time, then one by one. Every
// product is a vector of partial sums over the dimension, folded in the same order.
func (t *tile) multiply() {
	n := emit.Ptr("groups")
	if t.queries == 6 { // three rows have registers for eight keys, which are folded faster
		three := *t
		three.queries, three.wide = 3, 8
		t = &three
		ADDQ(n, n)
	}
	q, scores, groups := slot(emit.Ptr("q")), slot(t.local(scores)), slot(n)
	Label("multiply")
	run, count, out := slot(emit.Ptr("runs")), slot(emit.Ptr("count")), slot(loaded(scores))
	Label("multiplyRun")
	t.run(q, loaded(run), loaded(out))
	ADDQ(Imm(runBytes), run)
	ADDQ(Imm(scoreBlock), out)
	DECQ(count)
	JNZ(LabelRef("multiplyRun"))
	next := loaded(q)
	for range t.queries {
		ADDQ(t.qrow, next)
	}
	MOVQ(next, q)
	ADDQ(U32(uint32(t.queries*scoreRow)), scores)
	DECQ(groups)
	JNZ(LabelRef("multiply"))
}

// run multiplies a group of queries, the first at a pointer in a slot, by the keys
// of a run.
func (t *tile) run(q Mem, run, out reg.GPVirtual) {
	k, ahead := t.src.at("k", emit.At(run)), t.src.at("v", emit.At(run))
	n := slot(loaded(emit.At(run).Offset(8)))
	SUBQ(Imm(uint64(t.wide)), n)
	JL(LabelRef("keysDone"))
	Label("keys")
	t.keys("keysDim", q, k, ahead, out, t.wide)
	SUBQ(Imm(uint64(t.wide)), n)
	JGE(LabelRef("keys"))
	Label("keysDone")
	ADDQ(Imm(uint64(t.wide)), n)
	JZ(LabelRef("multiplied"))
	Label("key")
	t.keys("keyDim", q, k, ahead, out, 1)
	DECQ(n)
	JNZ(LabelRef("key"))
	Label("multiplied")
}

// keys multiplies a group of queries by wide keys and moves k, ahead and out behind
// them.
func (t *tile) keys(label string, first Mem, k, ahead, out reg.GPVirtual, wide int) {
	q, n := t.group(loaded(first)), emit.Ptr("dim")
	rows := t.keyRows(k, wide)
	sums := t.width.News(t.queries * wide)
	emit.Zero(sums...)

	Label(label)
	qv := t.width.News(t.queries)
	for i := range qv {
		VMOVUPS(q.at(i, 0), qv[i])
	}
	fetch(ahead, wide*t.vec())
	for j := range wide {
		kv := t.width.New()
		t.src.load(rows[j/4].At(j%4, 0), kv)
		for i := range qv {
			VFMADD231PS(qv[i], kv, sums[i*wide+j])
		}
	}
	q.move(t.width.Bytes())
	for _, r := range rows {
		ADDQ(Imm(uint64(t.vec())), r.Base)
	}
	SUBQ(Imm(uint64(t.width)), n)
	JNZ(LabelRef(label))

	for i := range t.queries {
		store(sums[i*wide:(i+1)*wide], Mem{Base: out, Disp: scoreRow * i})
	}
	ADDQ(Imm(uint64(4*wide)), out)
	for range wide {
		ADDQ(t.row, k)
	}
}

// vec is the bytes of a vector's elements.
func (t *tile) vec() int { return int(t.width) << t.src.shift }

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
