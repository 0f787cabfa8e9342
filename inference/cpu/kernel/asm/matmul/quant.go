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
	bias Mem // eight floats, when min = bias·d

	// offset starts integer sums from O, which makes up for 128 in the codes.
	offset bool
}

func (f *format) hasMin() bool { return f.mins || f.bias.Symbol.Name != "" }

// perBlock is the argument with what the kernel wants of a block beside D.
func (f *format) perBlock() string {
	if f.offset {
		return "o"
	}
	return "s"
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

// Constants shared by all formats.
var nibble, bit4 Mem

// quantised emits the kernels of one instruction set; codes emits the integer
// part of a block.
func quantised(isa string, formats []format, codes func(t *tile, off int)) {
	nibble = emit.Fill32("nibble", 0x0f0f0f0f)
	bit4 = emit.Fill32("bit4", 0x10101010)
	for _, f := range formats {
		for _, rows := range []int{1, 2, 4} {
			t := &tile{format: f, isa: isa, rows: rows, codes: codes}
			t.generate()
		}
	}
}

// tile emits one kernel: rows activation rows against strips of eight weight rows.
type tile struct {
	format
	isa        string
	rows       int
	codes      func(t *tile, off int)
	q, d, s    emit.Rows
	head, w    reg.GPVirtual // current header and block
	facc, iacc []reg.VecVirtual
}

func (t *tile) generate() {
	emit.Begin(fmt.Sprintf("%s%sx%d", t.isa, t.name, t.rows), signature,
		fmt.Sprintf("multiplies %d activation rows by strips of %s weights.", t.rows, t.name))
	dst := emit.Ptr("dst")
	t.pointers()
	strips := emit.Ptr("strips")

	Label("strip")
	t.facc = emit.YMMs(t.rows)
	emit.Zero(t.facc...)
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
	for r, acc := range t.facc {
		VMOVUPS(acc, out.At(r, 0))
	}
	ADDQ(Imm(32), dst)
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
}

// rewind moves the activation pointers back to the start of their rows.
func (t *tile) rewind() {
	back := GP64()
	Load(Param("cols"), back)
	SUBQ(back, t.q.Base)
	SHRQ(Imm(3), back)
	SUBQ(back, t.d.Base)
	SUBQ(back, t.s.Base)
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

// block emits one block of 32 columns whose scales lie off bytes after w.
func (t *tile) block(off int) {
	t.iacc = emit.YMMs(t.rows)
	t.codes(t, off)
	t.accumulate(off)
	ADDQ(Imm(32), t.q.Base)
	ADDQ(Imm(4), t.d.Base)
	if t.hasMin() || t.offset {
		ADDQ(Imm(4), t.s.Base)
	}
}
