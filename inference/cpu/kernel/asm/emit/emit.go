// Package emit holds what the assembly generators share.
package emit

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/gotypes"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Begin opens an assembly function that Go may call with pointers to its stack.
func Begin(name, signature, doc string) {
	TEXT(name, 0, signature)
	Doc(name + " " + doc)
	Pragma("noescape")
}

// End clears the upper halves, without which later SSE code stalls, and returns.
func End() {
	VZEROUPPER()
	RET()
}

// Ptr loads an argument into a register.
func Ptr(name string) reg.GPVirtual {
	r := GP64()
	Load(Param(name), r)
	return r
}

// Width is the number of floats in a vector register.
type Width int

// The widths there are: YMM and ZMM registers.
const (
	Eight   Width = 8
	Sixteen Width = 16
)

// New is a register of the width.
func (w Width) New() reg.VecVirtual {
	if w == Sixteen {
		return ZMM()
	}
	return YMM()
}

// News is n registers of the width.
func (w Width) News(n int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, n)
	for i := range v {
		v[i] = w.New()
	}
	return v
}

// Bytes is the size of a register.
func (w Width) Bytes() int { return 4 * int(w) }

// Fill32 is a constant vector of equal words.
func (w Width) Fill32(name string, v uint32) Mem {
	m := GLOBL(name, 8|16) // RODATA|NOPTR
	for i := range int(w) {
		DATA(4*i, U32(v))
	}
	return m
}

// FillF32 is a constant vector of equal floats, written as their bits: avo would
// print a whole number as an integer.
func (w Width) FillF32(name string, v float32) Mem { return w.Fill32(name, math.Float32bits(v)) }

// YMMs is n vector registers.
func YMMs(n int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, n)
	for i := range v {
		v[i] = YMM()
	}
	return v
}

// Zero clears vector registers.
func Zero(regs ...reg.VecVirtual) {
	for _, r := range regs {
		VXORPS(r, r, r)
	}
}

// Rows addresses up to four rows that lie a byte stride apart, without a
// register for each.
type Rows struct {
	Base, stride, stride3 reg.GPVirtual
}

// NewRows makes the addresses of n rows.
func NewRows(base, stride reg.GPVirtual, n int) Rows {
	r := Rows{Base: base, stride: stride}
	if n > 3 {
		r.stride3 = GP64()
		LEAQ(Mem{Base: stride, Index: stride, Scale: 2}, r.stride3)
	}
	return r
}

// At is the memory disp bytes into row i.
func (r Rows) At(i, disp int) Mem {
	m := Mem{Base: r.Base, Disp: disp}
	switch i {
	case 1, 2:
		m.Index, m.Scale = r.stride, uint8(i)
	case 3:
		m.Index, m.Scale = r.stride3, 1
	}
	return m
}

// Fill32 is a 32-byte constant of eight equal words.
func Fill32(name string, v uint32) Mem { return Eight.Fill32(name, v) }

// FillF32 is a 32-byte constant of eight equal floats.
func FillF32(name string, v float32) Mem { return Eight.FillF32(name, v) }

// Base loads the address of a slice argument's first element.
func Base(name string) reg.GPVirtual {
	r := GP64()
	Load(Param(name).Base(), r)
	return r
}

// Len loads the length of a slice argument.
func Len(name string) reg.GPVirtual {
	r := GP64()
	Load(Param(name).Len(), r)
	return r
}

// Arg is the stack slot of an argument. (avo's Load and Store would move a
// float with a legacy SSE instruction.)
func Arg(name string) Mem { return slot(Param(name)) }

// Result writes the lowest lane as the function's result.
func Result(v reg.VecVirtual) { VMOVSS(v, slot(ReturnIndex(0))) }

func slot(c gotypes.Component) Mem {
	b, err := c.Resolve()
	if err != nil {
		panic(err) // the generator names what its signature does not have
	}
	return b.Addr
}

// Broadcast loads a float argument into every lane.
func Broadcast(name string) reg.VecVirtual {
	v := YMM()
	VBROADCASTSS(Arg(name), v)
	return v
}

// At is the memory at p.
func At(p reg.GPVirtual) Mem { return Mem{Base: p} }
