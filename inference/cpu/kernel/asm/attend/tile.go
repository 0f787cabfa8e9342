package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

// tile emits one step for groups of query rows over some blocks. All scores come
// before all softmaxes, and those before all sums: the long chains of the softmax
// then overlap with each other and with the products around them. Maxima, sums and
// factors are those of block after block, so that it is no matter how many come at
// once.
//
// While keys are multiplied, the values of the block are fetched into the cache,
// and while values are added up, the keys of the block that has its place in the
// next step: a block is too short a run of memory for the processor to do that.
type tile struct {
	*emitter
	src     source
	queries int // rows of a group
	wide    int // keys, and vectors of values, at once

	base Mem           // a slot with the address of the scratch, see below
	row  reg.GPVirtual // bytes from a key to the next
	qrow reg.GPVirtual // bytes from a query to the next
}

// The scratch of a call, in bytes from its base, which begins a cache line.
const (
	scores  = 0                         // maxRows × blocks × blockRows floats: scores, then weights
	tops    = scores + maxRows*scoreRow // maxRows × blocks maxima
	shrink  = tops + maxRows*factorRow  // factors for what was accumulated before
	scratch = shrink + maxRows*factorRow + 64
)

// Bytes from one to the next.
const (
	scoreBlock = 4 * blockRows // blocks of scores of a query
	scoreRow   = blocks * scoreBlock
	factorRow  = 4 * blocks
	runBytes   = 16 // Runs
)

func (t *tile) generate() {
	emit.Begin(fmt.Sprintf("%sAttend%sx%d", t.isa, t.src.name, t.queries),
		fmt.Sprintf("func(st, acc, q *float32, k, v *%s, runs *int, groups, count, left, stride, dim int, scale float32)", t.src.goType),
		fmt.Sprintf("takes groups of %d query rows, %d rows at most, count runs further (%d at most), of left.", t.queries, maxRows, blocks))
	base := GP64()
	LEAQ(AllocLocal(scratch+64), base)
	ADDQ(Imm(63), base)
	ANDQ(I8(-64), base)
	t.base = slot(base)
	t.row, t.qrow = emit.Ptr("stride"), emit.Ptr("dim")
	SHLQ(Imm(uint64(t.src.shift)), t.row)
	SHLQ(Imm(2), t.qrow)

	t.multiply()
	t.softmax()
	t.gather()
	emit.End()
}

// local is a register with the address of a part of the scratch.
func (t *tile) local(part int) reg.GPVirtual {
	r := loaded(t.base)
	if part > 0 {
		ADDQ(U32(uint32(part)), r)
	}
	return r
}

// slot puts a value into a stack slot of its own: there are too few registers for
// what only outer loops change.
func slot(r reg.GPVirtual) Mem {
	m := AllocLocal(8)
	MOVQ(r, m)
	return m
}

// loaded is a register with what a slot holds.
func loaded(m Mem) reg.GPVirtual {
	r := GP64()
	MOVQ(m, r)
	return r
}

// group addresses the rows of a group, three to a base.
type group struct {
	base []reg.GPVirtual
	step reg.GPVirtual
}

// group makes the addresses of the group's rows from a register that is left alone.
func (t *tile) group(first reg.GPVirtual) group {
	g := group{step: t.qrow}
	for i := range (t.queries + 2) / 3 {
		next := GP64()
		MOVQ(first, next)
		for range 3 * i {
			ADDQ(t.qrow, next)
		}
		g.base = append(g.base, next)
	}
	return g
}

func (g group) at(i, disp int) Mem {
	m := Mem{Base: g.base[i/3], Disp: disp}
	if i%3 > 0 {
		m.Index, m.Scale = g.step, uint8(i%3)
	}
	return m
}

func (g group) move(bytes int) {
	for _, b := range g.base {
		ADDQ(U32(uint32(bytes)), b)
	}
}
