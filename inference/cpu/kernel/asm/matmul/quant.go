package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

// format mirrors the layout type of the kernel package (layout.go there).
type format struct {
	name string
	bits int
	per  int
	mins bool
	subs int
	// zero is what was added to make codes unsigned: 8, 16, 128 or nothing.
	// Integer sums make up for it with O.
	zero int
}

// perBlock is the argument with what the kernel wants of a block beside D.
func (f *format) perBlock() string {
	if f.mins {
		return "s"
	}
	return "o"
}

func (f *format) header() int {
	if f.mins {
		return 32
	}
	return 16
}

func (f *format) scales() int {
	if f.subs > 0 && f.mins {
		return 8 * (f.subs + 1)
	}
	return 8 * f.subs
}

const signature = "func(dst *float32, stride int, q *int8, cols int, d, s *float32, o *int32, w *byte, groups, strips int)"

// nibble and bit4 are constants of all formats.
var nibble, bit4 Mem

// isa is what differs between instruction sets.
type isa struct {
	name    string
	formats []format
	shapes  []shape
	// codes emits the integer part of the block at off.
	codes func(t *tile, off int)
	// own are the set's constants that a tile uses in its loop.
	own func(t *tile) []Mem
	// wide says that there are 32 vector registers, reached by the EVEX forms.
	wide bool
}

// shape is the activation rows and the weight strips of a tile.
type shape struct{ rows, strips int }

func quantised(set isa) {
	nibble = emit.Fill32("nibble", 0x0f0f0f0f)
	bit4 = emit.Fill32("bit4", 0x10101010)
	for _, f := range set.formats {
		for _, s := range set.shapes {
			t := &tile{format: f, isa: set, shape: s}
			t.generate()
		}
	}
}

// tile emits one kernel: some activation rows against strips of eight weight
// rows each. Accumulators of strip s and row r stand at s·rows + r.
type tile struct {
	format
	isa
	shape
	q, d, s    emit.Rows
	head, w    reg.GPVirtual // header and block of the first strip
	next       reg.GPVirtual // bytes from there to the second strip
	facc, iacc []reg.VecVirtual
	consts     map[string]Op
}

func (t *tile) generate() {
	name := fmt.Sprintf("%s%sx%d", t.isa.name, t.format.name, t.rows)
	if t.strips > 1 {
		name += fmt.Sprintf("x%d", t.strips)
	}
	emit.Begin(name, signature,
		fmt.Sprintf("multiplies %d activation rows by %d strips of %s weights at once.", t.rows, t.strips, t.format.name))
	dst := emit.Ptr("dst")
	t.pointers()
	t.hoist()
	strips := emit.Ptr("strips")

	Label("strip")
	t.facc = emit.YMMs(t.rows * t.strips)
	t.zeros(t.facc...)
	groups := emit.Ptr("groups")
	Label("group")
	t.head = t.w
	t.group()
	DECQ(groups)
	JNZ(LabelRef("group"))

	t.rewind()
	stride := emit.Ptr("stride")
	SHLQ(Imm(2), stride)
	out := emit.NewRows(dst, stride, t.rows)
	for i, acc := range t.facc {
		VMOVUPS(acc, out.At(i%t.rows, 32*(i/t.rows)))
	}
	ADDQ(Imm(uint64(32*t.strips)), dst)
	DECQ(strips)
	JNZ(LabelRef("strip"))
	emit.End()
}

func (t *tile) pointers() {
	q, cols := emit.Ptr("q"), emit.Ptr("cols")
	d, s, dstride := emit.Ptr("d"), emit.Ptr(t.perBlock()), GP64()
	t.w = emit.Ptr("w")
	MOVQ(cols, dstride) // a scale of four bytes for 32 columns of one byte
	SHRQ(Imm(3), dstride)
	t.q = emit.NewRows(q, cols, t.rows)
	t.d = emit.NewRows(d, dstride, t.rows)
	t.s = t.d
	t.s.Base = s
	if t.strips > 1 {
		t.next = GP64()
		group := t.header() + t.per*(t.scales()+32*t.bits)
		IMUL3Q(U32(uint32(group)), emit.Ptr("groups"), t.next)
	}
}

// hoist keeps constants in registers where there are enough of them: two loads
// a cycle are what limits these loops.
func (t *tile) hoist() {
	t.consts = map[string]Op{}
	keep := func(m Mem) {
		t.consts[m.Symbol.Name] = m
		if t.wide || t.bits != 5 || t.rows < 4 {
			v := YMM()
			VMOVUPS(m, v)
			t.consts[m.Symbol.Name] = v
		}
	}
	if t.bits < 8 {
		keep(nibble)
	}
	if t.bits == 5 {
		keep(bit4)
	}
	for _, m := range t.own(t) {
		keep(m)
	}
}

// constant is m, or the register that holds it.
func (t *tile) constant(m Mem) Op { return t.consts[m.Symbol.Name] }

// weights is the memory disp bytes behind p, w or head, in a strip.
func (t *tile) weights(p reg.GPVirtual, strip, disp int) Mem {
	m := Mem{Base: p, Disp: disp}
	if strip > 0 {
		m.Index, m.Scale = t.next, 1
	}
	return m
}

// rewind moves the activation pointers back to the start of their rows, and w
// behind the second strip.
func (t *tile) rewind() {
	back := GP64()
	Load(Param("cols"), back)
	SUBQ(back, t.q.Base)
	SHRQ(Imm(3), back)
	SUBQ(back, t.d.Base)
	SUBQ(back, t.s.Base)
	if t.strips > 1 {
		ADDQ(t.next, t.w)
	}
}

// group emits a header and its blocks.
func (t *tile) group() {
	if t.per == 1 {
		t.block(t.header())
		ADDQ(U32(uint32(t.header()+32*t.bits)), t.w)
		return
	}
	t.head = GP64()
	MOVQ(t.w, t.head)
	ADDQ(U32(uint32(t.header())), t.w)
	n := GP64()
	MOVQ(U32(uint32(t.per)), n)
	Label("block")
	t.block(0)
	ADDQ(U32(uint32(t.scales()+32*t.bits)), t.w)
	DECQ(n)
	JNZ(LabelRef("block"))
}

// reach is how many bytes ahead of what is read weights are asked for. Few rows take as
// long as their weights take to come, and what a processor fetches on its own ends with
// a page of 4,096 bytes. Twice that was the best of 1,024 to 16,384, or as good: one
// thread read from memory a fifth to a third faster than without, and two decoded SmolLM2
// a tenth faster, in turn. Weights that are in
// the second-level cache anyway come an eighth more slowly.
const reach = 8192

// ask asks for as many bytes as are read next, where few rows are multiplied.
func (t *tile) ask(size int) {
	if !t.wide || t.rows > 2 {
		return
	}
	for at := 0; at < size; at += 64 {
		PREFETCHT0(Mem{Base: t.w, Disp: reach + at})
	}
}

// block emits one block of 32 columns whose scales lie off bytes after w.
func (t *tile) block(off int) {
	t.ask(off + t.scales() + 32*t.bits)
	t.iacc = emit.YMMs(t.rows * t.strips)
	t.codes(t, off)
	t.accumulate(off)
	ADDQ(Imm(32), t.q.Base)
	ADDQ(Imm(4), t.d.Base)
	ADDQ(Imm(4), t.s.Base)
}
