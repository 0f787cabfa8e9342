package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

// gather is acc = acc·shrink + Σ weight·v, positions in order, for as many
// dimensions at once as fit, and then for fewer.
func (t *tile) gather() {
	acc, groups := emit.Ptr("acc"), slot(emit.Ptr("groups"))
	first := t.local(scores)
	LEAQ(Mem{Base: first, Index: emit.Ptr("from"), Scale: 4}, first)
	scores, shrink := slot(first), slot(t.local(shrink))
	row := GP64()
	MOVQ(t.qrow, row)
	if t.src.shift == 1 {
		SHRQ(Imm(1), row)
	}
	t.vrow = slot(row)
	Label("gather")
	n, offset := slot(emit.Ptr("dim")), GP64()
	XORQ(offset, offset)
	for wide := t.wide; wide > 0; wide /= 2 {
		loop, done := fmt.Sprintf("values%d", wide), fmt.Sprintf("values%dDone", wide)
		dims := wide * int(t.width)
		SUBQ(Imm(uint64(dims)), n)
		JL(LabelRef(done))
		Label(loop)
		t.values(loop, acc, offset, scores, shrink, wide)
		ADDQ(U32(uint32(4*dims)), acc)
		ADDQ(U32(uint32(dims<<t.src.shift)), offset)
		SUBQ(Imm(uint64(dims)), n)
		JGE(LabelRef(loop))
		Label(done)
		ADDQ(Imm(uint64(dims)), n)
	}
	for range t.queries - 1 { // acc stands at the end of its first row
		ADDQ(t.qrow, acc)
	}
	ADDQ(U32(uint32(t.queries*scoreRow)), scores)
	ADDQ(Imm(uint64(4*t.queries)), shrink)
	DECQ(groups)
	JNZ(LabelRef("gather"))
}

// values does wide vectors of the dimension, offset bytes into every row of values.
func (t *tile) values(label string, first, offset reg.GPVirtual, scores, shrink Mem, wide int) {
	acc := t.rows(first)
	sums := t.width.News(t.queries * wide)
	factors := loaded(shrink)
	for i := range t.queries {
		f := t.width.New()
		VBROADCASTSS(emit.At(factors).Offset(4*i), f)
		for c := range wide {
			VMULPS(acc.at(i, t.width.Bytes()*c), f, sums[i*wide+c])
		}
	}
	weights, ids, left, count := loaded(scores), emit.Ptr("blocks"), emit.Ptr("to"), GP64()
	row, skip := t.blockAt(emit.Arg("v"), emit.At(ids)), GP64()
	ADDQ(offset, row)
	t.atMost(left, count)
	SUBQ(emit.Arg("from"), count)
	MOVQ(emit.Arg("from"), skip)
	IMULQ(t.vrow, skip)
	ADDQ(skip, row)

	Label(label + "Row")
	p := t.width.News(t.queries)
	for i := range p {
		VBROADCASTSS(Mem{Base: weights, Disp: scoreRow * i}, p[i])
	}
	for c := range wide {
		value := t.width.New()
		t.src.load(Mem{Base: row, Disp: int(t.width) << t.src.shift * c}, value)
		for i := range p {
			VFMADD231PS(p[i], value, sums[i*wide+c])
		}
	}
	ADDQ(Imm(4), weights)
	ADDQ(t.vrow, row)
	DECQ(count)
	JNZ(LabelRef(label + "Row"))
	SUBQ(Imm(blockKeys), left)
	JLE(LabelRef(label + "End"))
	ADDQ(Imm(4), ids)
	next := t.blockAt(emit.Arg("v"), emit.At(ids))
	LEAQ(Mem{Base: next, Index: offset, Scale: 1}, row)
	t.atMost(left, count)
	JMP(LabelRef(label + "Row"))
	Label(label + "End")
	for i := range t.queries {
		for c := range wide {
			VMOVUPS(sums[i*wide+c], acc.at(i, t.width.Bytes()*c))
		}
	}
}

// atMost sets count to left, or to the keys of a block where that is less.
func (t *tile) atMost(left, count reg.GPVirtual) {
	most := GP64()
	MOVQ(U32(blockKeys), most)
	MOVQ(left, count)
	CMPQ(count, most)
	CMOVQGT(most, count)
}
