package emit

import (
	"math"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Exp emits a vector of exponentials. e^x = 2^n·e^r with n = round(x·log2 e) and
// |r| ≤ ln2/2; e^r is 1 + r + r²·P(r) with the degree 5 minimax P of the Cephes
// library (expf.c, S. L. Moshier), whose stated relative error is 1.7e-7: two
// units in the last place. ln2 is taken off in two parts. n is rounded by adding
// 1.5·2²³, which leaves it in the low bits of the sum. NaN stays NaN.
type Exp struct {
	width                                  Width
	low, high, log2e, ln2High, ln2Low, one Op
	magic, bias                            Op
	poly                                   [6]Op
}

// NewExp declares the constants; call it once a file.
func NewExp(w Width) *Exp {
	e := &Exp{
		width:   w,
		low:     w.FillF32("expLow", -87.33654),
		high:    w.FillF32("expHigh", 89),
		log2e:   w.FillF32("expLog2e", math.Log2E),
		ln2High: w.FillF32("expLn2High", 0.693359375),
		ln2Low:  w.FillF32("expLn2Low", -2.12194440e-4),
		one:     w.FillF32("expOne", 1),
		magic:   w.FillF32("expMagic", 3<<22),
		bias:    w.FillF32("expBias", 1),
	}
	for i, c := range [6]float32{
		1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1,
	} {
		e.poly[i] = w.FillF32("expPoly"+string(rune('0'+i)), c)
	}
	return e
}

// Held is e for OfNegative alone, with its constants in registers: for loops with
// registers to spare.
func (e *Exp) Held() *Exp {
	h := *e
	for _, c := range []*Op{&h.low, &h.log2e, &h.ln2High, &h.ln2Low, &h.magic, &h.bias} {
		*c = e.hold(*c)
	}
	for i := range h.poly {
		h.poly[i] = e.hold(h.poly[i])
	}
	return &h
}

func (e *Exp) hold(c Op) Op {
	r := e.width.New()
	VMOVUPS(c, r)
	return r
}

// Of replaces x by its exponential: 0 where that is below the smallest normal
// number, infinite from x ≈ 88.38 on.
func (e *Exp) Of(x reg.VecVirtual) {
	normal, c := e.width.New(), e.width.New()
	VMOVUPS(e.low, c)
	VCMPPS(Imm(0x15), c, x, normal) // not less than, true for NaN
	VMAXPS(x, c, x)                 // the second source wins when one is NaN
	VMOVUPS(e.high, c)
	VMINPS(x, c, x)
	power, fraction := e.parts(x)
	VADDPS(e.one, fraction, fraction)
	VMULPS(power, fraction, x)
	VANDPS(normal, x, x)
}

// OfNegative is Of for x ≤ 0, with e^-87.3 instead of 0 for what is smaller.
func (e *Exp) OfNegative(x reg.VecVirtual) {
	c := e.width.New()
	VMOVUPS(e.low, c)
	VMAXPS(x, c, x)
	power, fraction := e.parts(x)
	VFMADD213PS(power, power, fraction) // fraction may be negative: n < 128 here
	VMOVAPS(fraction, x)
}

// parts splits e^x, x being within bounds, into 2^n and e^r − 1.
func (e *Exp) parts(x reg.VecVirtual) (power, fraction reg.VecVirtual) {
	t, n, p, rr := e.width.New(), e.width.New(), e.width.New(), e.width.New()
	VMOVUPS(e.magic, t)
	VMOVAPS(t, n)
	VFMADD231PS(e.log2e, x, t)
	VSUBPS(n, t, n)
	VFNMADD231PS(e.ln2High, n, x)
	VFNMADD231PS(e.ln2Low, n, x)
	VMULPS(x, x, rr)
	VMOVUPS(e.poly[0], p)
	for _, c := range e.poly[1:] {
		VFMADD213PS(c, x, p)
	}
	VFMADD213PS(x, rr, p)
	VPSLLD(Imm(23), t, t)
	VPADDD(e.bias, t, t)
	return t, p
}

// One is a vector of ones.
func (e *Exp) One() Op { return e.one }
