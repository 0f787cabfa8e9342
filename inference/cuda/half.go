//go:build cuda && cgo

package cuda

import (
	"encoding/binary"
	"math"

	"ragd/inference/cuda/cudrv"
	"ragd/inference/quant"
)

// form is what a matrix's products read of their input.
type form int

const (
	asFloats form = iota
	asCodes       // int8 with scales of 32 columns
	asHalves      // f16 with scales of 256 columns, on tensor cores
)

// formOf chooses it, once for a matrix: the kernels of one form give a row the same bits
// whatever the number of rows, and those of two forms do not.
func (b *Backend) formOf(f format, cols int) form {
	switch {
	case f.size == 2 && b.tensor && cols%32 == 0:
		return asHalves
	case f.bits > 0 && b.halves:
		return asHalves
	case f.bits > 0:
		return asCodes
	}
	return asFloats
}

// halvesPay says whether quantised matrices are multiplied in half precision on devices of
// a compute capability, too. Products of int8 take five float32 instructions for each sum
// over 32 columns, those in half precision one for 256 and two for a weight, which serves
// 64 rows. Data-centre parts have many times more tensor cores than float32 units, and half
// the int8 rate in f16 with float32 sums; the others a quarter, and relatively more float32
// units. docs/GPU.md has the figures, and the roofline test holds this to them.
func halvesPay(major, minor int) bool {
	return minor == 0 && (major == 8 || major == 9) || major == 10
}

// The layout of kernel/half.cuh.
const (
	halfSpan = 256 // columns with one scale
	halfTile = 8   // rows of activations that lie together
)

// halvesSize is the bytes of an input in half precision, and of its scales.
func halvesSize(rows, cols int) (x, scales int64) {
	n := int64(ceil(rows, halfTile)*halfTile) * int64(ceil(cols, halfSpan))
	return n * halfSpan * 2, n * 4
}

// The tiles of kernel/half.cu: weight rows and rows of activations of a thread block, and
// the spans whose sums are in shared memory together.
const (
	fewRows, fewColumns, fewSpans    = 16, 8, 64
	someRows, someColumns, someSpans = 32, 32, 8
	manyRows, manyColumns            = 256, 64
	halfThreads                      = 256
)

// defaultManyFrom is how many thread blocks of the largest tile there have to be.
const defaultManyFrom = 64

// halfLaunch chooses the kernel and the shape of a product with n rows of activations.
// The largest tiles read least, where they are enough to keep a device busy.
func (b *Backend) halfLaunch(m *matrix, n int) (cudrv.Function, cudrv.Grid) {
	spans := ceil(m.cols, halfSpan)
	grid := cudrv.Grid{X: ceil(m.rows, manyRows), Y: ceil(n, manyColumns), Z: 1, Threads: halfThreads}
	switch {
	case n <= fewColumns:
		grid.X, grid.Y = ceil(m.rows, fewRows), 1
		grid.Shared = 4 * fewRows * fewColumns * min(spans, fewSpans)
		return m.products[0], grid
	case grid.X*grid.Y < b.manyFrom:
		grid.X, grid.Y = ceil(m.rows, someRows), ceil(n, someColumns)
		grid.Shared = 4 * someRows * someColumns * min(spans, someSpans)
		return m.products[1], grid
	}
	return m.products[2], grid
}

// fitHalves brings a matrix to the range of f16. The values of bfloat16, whose eight bits
// of fraction f16 has, are stored anew, times a power of two that brings the largest to
// [2^14, 2^15); those under 2^-29 of it lose bits, at most 2^-40 of it. Those of codes are
// computed times such a power; f16 is as it is.
func (m *matrix) fitHalves(p *planes) {
	var exponent int
	switch {
	case p.format.bits > 0:
		exponent = exponentFor(p.bound())
		m.factor = float32(math.Ldexp(1, exponent))
	case p.format.name == "bf16":
		p.data, exponent = halvesOf(p.data)
		p.format = formats[quant.F16]
		m.unit = float32(math.Ldexp(1, -exponent))
	}
	m.back = float32(math.Ldexp(1, -exponent))
}

// bound is no smaller than any weight that scales and codes can make, and mostly less than
// 32 times the largest.
func (p *planes) bound() float64 {
	code, scale, min := 1<<4, 1, 1
	if p.format.bits == 8 {
		code = 1 << 7
	}
	if p.format.scales > 0 {
		scale, min = 1<<(5+p.format.scales), 1<<6
	}
	top := 0.0
	for i := range p.headers {
		v := magnitude(p.data[p.d+2*i:]) * float64(code*scale)
		if p.format.min {
			v += magnitude(p.data[p.m+2*i:]) * float64(min)
		}
		if !math.IsInf(v, 0) && !math.IsNaN(v) {
			top = max(top, v)
		}
	}
	return top
}

// magnitude is that of an f16.
func magnitude(b []byte) float64 {
	return math.Abs(float64(quant.F16ToF32(binary.LittleEndian.Uint16(b))))
}

// halvesOf is bfloat16 values as f16, times 2^exponent.
func halvesOf(data []byte) (out []byte, exponent int) {
	var top uint16
	for i := 0; i < len(data); i += 2 {
		if v := binary.LittleEndian.Uint16(data[i:]) & 0x7fff; v > top && v < 0x7f80 {
			top = v
		}
	}
	exponent = exponentFor(float64(quant.BF16ToF32(top)))
	by := float32(math.Ldexp(1, exponent))
	table := make([]uint16, 1<<16)
	for i := range table {
		table[i] = quant.F32ToF16(quant.BF16ToF32(uint16(i)) * by)
	}
	out = make([]byte, len(data))
	for i := 0; i < len(data); i += 2 {
		binary.LittleEndian.PutUint16(out[i:], table[binary.LittleEndian.Uint16(data[i:])])
	}
	return out, exponent
}

// exponentFor is the power of two that brings top to [2^14, 2^15).
func exponentFor(top float64) int {
	if top == 0 {
		return 0
	}
	_, e := math.Frexp(top)
	return min(max(15-e, -100), 100)
}
