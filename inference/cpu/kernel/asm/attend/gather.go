package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

// gather is acc = acc·shrink + Σ weight·v for one run after another, rows in order,
// for as many dimensions at once as fit, and then for fewer.
func (t *tile) gather() {
	acc, groups := emit.Ptr("acc"), slot(emit.Ptr("groups"))
	scores, shrink := slot(t.local(scores)), slot(t.local(shrink))
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
	ADDQ(Imm(uint64(factorRow*t.queries)), shrink)
	DECQ(groups)
	JNZ(LabelRef("gather"))
}

// values does wide vectors of the dimension, offset bytes into every row of values.
func (t *tile) values(label string, first, offset reg.GPVirtual, scores, shrink Mem, wide int) {
	acc := t.group(first)
	sums := t.width.News(t.queries * wide)
	for i := range t.queries {
		for c := range wide {
			VMOVUPS(acc.at(i, t.width.Bytes()*c), sums[i*wide+c])
		}
	}
	run, count := emit.Ptr("runs"), slot(emit.Ptr("count"))
	weights, factors := slot(loaded(scores)), slot(loaded(shrink))
	Label(label + "Run")
	t.shrink(loaded(factors), sums)
	t.rows(label, run, offset, loaded(weights), sums)
	ADDQ(Imm(runBytes), run)
	ADDQ(Imm(scoreBlock), weights)
	ADDQ(Imm(4), factors)
	DECQ(count)
	JNZ(LabelRef(label + "Run"))
	for i := range t.queries {
		for c := range wide {
			VMOVUPS(sums[i*wide+c], acc.at(i, t.width.Bytes()*c))
		}
	}
}

// shrink multiplies the sums of each query by its factor.
func (t *tile) shrink(factors reg.GPVirtual, sums []reg.VecVirtual) {
	wide := len(sums) / t.queries
	for i := range t.queries {
		f := t.width.New()
		VBROADCASTSS(emit.At(factors).Offset(factorRow*i), f)
		for _, s := range sums[i*wide : (i+1)*wide] {
			VMULPS(s, f, s)
		}
	}
}

// rows adds the rows of a run.
func (t *tile) rows(label string, run, offset, weights reg.GPVirtual, sums []reg.VecVirtual) {
	wide := len(sums) / t.queries
	row, n, ahead := t.src.at("v", emit.At(run)), loaded(emit.At(run).Offset(8)), t.ahead(run, offset)
	ADDQ(offset, row)
	Label(label + "Row")
	p := t.width.News(t.queries)
	for i := range p {
		VBROADCASTSS(Mem{Base: weights, Disp: scoreRow * i}, p[i])
	}
	fetch(ahead, wide*t.vec())
	for c := range wide {
		x := t.width.New()
		t.src.load(Mem{Base: row, Disp: t.vec() * c}, x)
		for i := range p {
			VFMADD231PS(p[i], x, sums[i*wide+c])
		}
	}
	ADDQ(Imm(4), weights)
	ADDQ(t.row, row)
	DECQ(n)
	JNZ(LabelRef(label + "Row"))
}

// ahead is where to fetch keys of the run that is blocks behind, the part for the
// values at an offset; from the last run on there are none, and it is the same again.
func (t *tile) ahead(run, offset reg.GPVirtual) reg.GPVirtual {
	far, end, last := GP64(), emit.Ptr("left"), GP64()
	LEAQ(Mem{Base: run, Disp: blocks * runBytes}, far)
	SHLQ(Imm(4), end)
	ADDQ(emit.Arg("runs"), end)
	MOVQ(run, last)
	CMPQ(far, end)
	CMOVQCC(last, far)
	p := t.src.at("k", emit.At(far))
	part := GP64()
	MOVQ(offset, part)
	SHLQ(Imm(4), part) // × blockRows
	ADDQ(part, p)
	return p
}
