package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

// tile emits one step for groups of query rows over a chunk. All scores come
// before all softmaxes, and those before all sums: the long chains of the softmax
// then overlap with each other and with the products around them.
//
// A block of keys has a vector for each dimension with a key in each lane, so a
// score is one sum over the dimensions in order and nothing is added across lanes.
type tile struct {
	*emitter
	src     source
	queries int // rows of a group
	wide    int // vectors of keys or values at once

	base  Mem           // a slot with the address of the scratch, see below
	block Mem           // a slot with the bytes of a block
	vrow  Mem           // a slot with the bytes from a position's values to the next
	qrow  reg.GPVirtual // bytes from a query to the next
}

// The scratch of a call, in bytes from its base, which begins a cache line.
const (
	scores  = 0                         // maxRows × chunkKeys floats: scores, then weights
	shrink  = scores + maxRows*scoreRow // factors for what was accumulated before
	masks   = shrink + 2*64             // chunkKeys words: ones where a key is seen
	fills   = masks + scoreRow          // chunkKeys floats: −∞ where it is not, else 0
	scratch = fills + scoreRow
)

func (t *tile) generate() {
	emit.Begin(fmt.Sprintf("%sAttend%sx%d", t.isa, t.src.name, t.queries),
		fmt.Sprintf("func(st, acc, q *float32, k, v *%s, blocks *int32, groups, from, to, dim int, scale float32)", t.src.goType),
		fmt.Sprintf("takes groups of %d query rows, %d rows at most, one chunk further.", t.queries, maxRows))
	base := GP64()
	LEAQ(AllocLocal(scratch+64), base)
	ADDQ(Imm(63), base)
	ANDQ(I8(-64), base)
	t.base = slot(base)
	t.qrow = emit.Ptr("dim")
	SHLQ(Imm(2), t.qrow)
	bytes := GP64()
	MOVQ(t.qrow, bytes)
	SHLQ(Imm(uint64(2+t.src.shift)), bytes) // × blockKeys × the element's bytes / 4
	t.block = slot(bytes)

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

// rows addresses the rows of a group, three to a base.
type rows struct {
	base []reg.GPVirtual
	step reg.GPVirtual
}

// rows makes the addresses of the group's rows from a register that is left alone.
func (t *tile) rows(first reg.GPVirtual) rows {
	r := rows{step: t.qrow}
	for i := range (t.queries + 2) / 3 {
		next := GP64()
		MOVQ(first, next)
		for range 3 * i {
			ADDQ(t.qrow, next)
		}
		r.base = append(r.base, next)
	}
	return r
}

func (r rows) at(i, disp int) Mem {
	m := Mem{Base: r.base[i/3], Disp: disp}
	if i%3 > 0 {
		m.Index, m.Scale = r.step, uint8(i%3)
	}
	return m
}

func (r rows) move(bytes int) {
	for _, b := range r.base {
		ADDQ(U32(uint32(bytes)), b)
	}
}

// blockAt is the address of the block whose number lies at id.
func (t *tile) blockAt(first Mem, id Mem) reg.GPVirtual {
	p := GP64()
	MOVLQSX(id, p)
	IMULQ(t.block, p)
	ADDQ(first, p)
	return p
}

// multiply fills scores with q·k: as many blocks at once as fit, then one by one.
func (t *tile) multiply() {
	q, scores, groups := slot(emit.Ptr("q")), slot(t.local(scores)), slot(emit.Ptr("groups"))
	wide := t.wide / t.vectors()
	Label("multiply")
	ids, out, end := emit.Ptr("blocks"), loaded(scores), emit.Ptr("to")
	ADDQ(Imm(blockKeys-1), end)
	SHRQ(Imm(4), end)
	n := slot(end)
	if wide > 1 {
		SUBQ(Imm(uint64(wide)), n)
		JL(LabelRef("wideDone"))
		Label("wide")
		t.keys("wideDim", q, ids, out, wide)
		SUBQ(Imm(uint64(wide)), n)
		JGE(LabelRef("wide"))
		Label("wideDone")
		ADDQ(Imm(uint64(wide)), n)
		JZ(LabelRef("multiplied"))
	}
	Label("one")
	t.keys("oneDim", q, ids, out, 1)
	DECQ(n)
	JNZ(LabelRef("one"))
	Label("multiplied")
	next := loaded(q)
	for range t.queries {
		ADDQ(t.qrow, next)
	}
	MOVQ(next, q)
	ADDQ(U32(uint32(t.queries*scoreRow)), scores)
	DECQ(groups)
	JNZ(LabelRef("multiply"))
}

// keys multiplies a group of queries, the first at a pointer in a slot, by some blocks of keys and
// moves ids and out behind them. Dimensions go by twos.
func (t *tile) keys(label string, first Mem, ids, out reg.GPVirtual, blocks int) {
	k := make([]reg.GPVirtual, blocks)
	for b := range k {
		k[b] = t.blockAt(emit.Arg("k"), Mem{Base: ids, Disp: 4 * b})
	}
	q, n := t.rows(loaded(first)), emit.Ptr("dim")
	each := t.vectors()
	sums := t.width.News(t.queries * blocks * each)
	emit.Zero(sums...)
	Label(label)
	column := blockKeys << t.src.shift // bytes of one dimension
	for d := range 2 {
		x := t.width.News(t.queries)
		for i := range x {
			VBROADCASTSS(q.at(i, 4*d), x[i])
		}
		for j := range blocks * each {
			key := t.width.New()
			t.src.load(Mem{Base: k[j/each], Disp: d*column + j%each*column/each}, key)
			for i := range x {
				VFMADD231PS(x[i], key, sums[i*blocks*each+j])
			}
		}
	}
	q.move(8)
	for b := range k {
		ADDQ(U32(uint32(2*column)), k[b])
	}
	SUBQ(Imm(2), n)
	JNZ(LabelRef(label))
	for i := range t.queries {
		for j := range blocks * each {
			VMOVUPS(sums[i*blocks*each+j], Mem{Base: out, Disp: scoreRow*i + t.width.Bytes()*j})
		}
	}
	ADDQ(U32(uint32(4*blockKeys*blocks)), out)
	ADDQ(Imm(uint64(4*blocks)), ids)
}
