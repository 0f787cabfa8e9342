package emit

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Lanes moves eight floats, or those of a tail that a mask selects: masked lanes
// are read as zero and neither they nor their memory are touched.
type Lanes struct {
	mask   reg.VecVirtual
	masked bool
}

// Load reads into v.
func (l Lanes) Load(m Mem, v reg.VecVirtual) {
	if l.masked {
		VMASKMOVPS(m, l.mask, v)
		return
	}
	VMOVUPS(m, v)
}

// Store writes v.
func (l Lanes) Store(v reg.VecVirtual, m Mem) {
	if l.masked {
		VMASKMOVPS(v, l.mask, m)
		return
	}
	VMOVUPS(v, m)
}

// Keep zeroes the masked lanes of v.
func (l Lanes) Keep(v reg.VecVirtual) {
	if l.masked {
		VANDPS(l.mask, v, v)
	}
}

// KeepOr puts the lanes of fill into the masked lanes of v.
func (l Lanes) KeepOr(v, fill reg.VecVirtual) {
	if l.masked {
		VBLENDVPS(l.mask, v, fill, v)
	}
}

// Loop emits loops over floats: eight at a time, then the rest masked.
type Loop struct{ table Mem }

// NewLoop declares the table of masks; call it once a file.
func NewLoop() *Loop {
	l := &Loop{table: GLOBL("tailMask", 8|16)}
	for i := range 16 {
		v := uint32(0)
		if i < 8 {
			v = 0xffffffff
		}
		DATA(4*i, U32(v))
	}
	return l
}

// Mask is the mask of the first n < 8 lanes.
func (l *Loop) Mask(n reg.GPVirtual) reg.VecVirtual {
	at, off, mask := GP64(), GP64(), YMM()
	LEAQ(l.table.Offset(32), at)
	MOVQ(n, off)
	NEGQ(off)
	VMOVDQU(Mem{Base: at, Index: off, Scale: 4}, mask)
	return mask
}

// Each runs body over n floats, moving the pointers forward; n is consumed.
func (l *Loop) Each(name string, n reg.GPVirtual, ptrs []reg.GPVirtual, body func(Lanes)) {
	l.Unrolled(name, 1, n, ptrs, func(_ int, l Lanes) { body(l) })
}

// Unrolled is Each with a leading loop of unroll × eight floats; body gets the
// number of the eight.
func (l *Loop) Unrolled(name string, unroll int, n reg.GPVirtual, ptrs []reg.GPVirtual, body func(int, Lanes)) {
	sizes := []int{unroll, 1}
	if unroll == 1 {
		sizes = sizes[1:]
	}
	for _, size := range sizes {
		label, done := fmt.Sprintf("%s%d", name, size), fmt.Sprintf("%s%dDone", name, size)
		SUBQ(Imm(uint64(8*size)), n)
		JL(LabelRef(done))
		Label(label)
		for i := range size {
			body(i, Lanes{})
		}
		for _, p := range ptrs {
			ADDQ(U32(uint32(32*size)), p)
		}
		SUBQ(Imm(uint64(8*size)), n)
		JGE(LabelRef(label))
		Label(done)
		ADDQ(Imm(uint64(8*size)), n)
	}
	end := name + "End"
	JZ(LabelRef(end))
	body(0, Lanes{mask: l.Mask(n), masked: true})
	Label(end)
}

// Sum adds the lanes of v into all lanes of an XMM register: halves first, then
// pairs, then neighbours.
func Sum(v reg.VecVirtual) reg.VecVirtual {
	x, y := Fold(v), XMM()
	for _, swap := range []uint64{0x4e, 0xb1} {
		VPERMILPS(Imm(swap), x, y)
		VADDPS(y, x, x)
	}
	return x
}

// Fold adds the halves of v.
func Fold(v reg.VecVirtual) reg.VecVirtual {
	x := XMM()
	VEXTRACTF128(Imm(1), v, x)
	VADDPS(v.AsX(), x, x)
	return x
}

// Max leaves the largest lane of v in all lanes of an XMM register, NaN of the
// later lanes winning as VMAXPS has it.
func Max(v reg.VecVirtual) reg.VecVirtual {
	x, y := XMM(), XMM()
	VEXTRACTF128(Imm(1), v, x)
	VMAXPS(v.AsX(), x, x)
	VPERMILPS(Imm(0x4e), x, y)
	VMAXPS(y, x, x)
	VPERMILPS(Imm(0xb1), x, y)
	VMAXPS(y, x, x)
	return x
}
