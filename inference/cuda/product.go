//go:build cuda && cgo

package cuda

import (
	"ragd/inference/cuda/cudrv"
	"ragd/inference/model"
)

// input is what products read: float32 rows, the same quantised, and the same in half
// precision. Each form is made only when a weight matrix reads it.
type input struct {
	floats, q, d, s buffer
	halves, scales  buffer
	rows, cols      int
	to              forms
}

// forms are where rows go: float32; codes, their scales and sums; f16 and its scales.
// 0 is for those that nothing reads.
type forms [6]cudrv.Ptr

// prepare sizes the input for the matrices that will read it.
func (b *Backend) prepare(rows, cols int, readers ...*matrix) {
	in := &b.input
	in.rows, in.cols, in.to = rows, cols, forms{}
	n := int64(rows) * int64(cols)
	for _, m := range readers {
		switch m.reads {
		case asFloats:
			in.to[0] = b.reserve(&in.floats, 4*n)
		case asCodes:
			in.to[1], in.to[2], in.to[3] = b.reserve(&in.q, n), b.reserve(&in.d, n/8), b.reserve(&in.s, n/8)
		case asHalves:
			x, scales := halvesSize(rows, cols)
			in.to[4], in.to[5] = b.reserve(&in.halves, x), b.reserve(&in.scales, scales)
		}
	}
}

const rowThreads = 128

// normalise makes the norm of x (or of the rows that index lists) the input.
func (b *Backend) normalise(x cudrv.Ptr, n model.Norm, index cudrv.Ptr) {
	in := &b.input
	b.launch(b.kernels["norm_rows"], cudrv.Grid{X: in.rows, Y: 1, Z: 1, Threads: rowThreads}).
		ptrs(in.to[:]...).ptrs(x, index, ptrOf(n.Gain), ptrOf(n.Shift)).floats(n.Eps).ints(in.cols)
}

// normInPlace is x = n(x).
func (b *Backend) normInPlace(x cudrv.Ptr, width int, n model.Norm) {
	b.launch(b.kernels["norm_rows"], cudrv.Grid{X: b.step.rows, Y: 1, Z: 1, Threads: rowThreads}).
		ptrs(x, 0, 0, 0, 0, 0, x, 0, ptrOf(n.Gain), ptrOf(n.Shift)).floats(n.Eps).ints(width)
}

// The activations of kernel activate_rows.
const (
	actSiLU = iota
	actGELUTanh
	actGELU
	actTanh
)

// activate makes act(gate)·up the input; without up, act(gate).
func (b *Backend) activate(act int, gate, up cudrv.Ptr) {
	b.activateTo(b.input.to, act, gate, up, b.input.rows, b.input.cols)
}

func (b *Backend) activateTo(to forms, act int, gate, up cudrv.Ptr, rows, width int) {
	b.launch(b.kernels["activate_rows"], cudrv.Grid{X: rows, Y: ceil(width, 4*rowThreads), Z: 1, Threads: rowThreads}).
		ptrs(to[:]...).ptrs(gate, up).ints(act, width)
}

const (
	productWarps = 4 // weight rows of a thread block
	columnTile   = 8 // rows of activations of a thread block at the most
)

// The tile of kernel/tensor.cu, its threads and its shared memory.
const (
	tensorRows, tensorColumns = 64, 32
	tensorThreads             = 256
	tensorShared              = 4 * 4 * tensorRows * tensorColumns
)

// defaultTensorFrom is how many rows of activations go to tensor cores: the plain
// kernels read the weights again for every columnTile rows.
const defaultTensorFrom = columnTile + 1

// productLaunch chooses the kernel and the shape of a product with n rows of
// activations.
func (b *Backend) productLaunch(m *matrix, n int) (cudrv.Function, cudrv.Grid) {
	if m.reads == asHalves {
		return b.halfLaunch(m, n)
	}
	if b.tensor && m.reads == asCodes && n >= b.tensorFrom {
		return m.tensor, cudrv.Grid{X: ceil(m.rows, tensorRows), Y: ceil(n, tensorColumns), Z: 1, Threads: tensorThreads, Shared: tensorShared}
	}
	variant, columns := 2, columnTile
	switch {
	case n == 1:
		variant, columns = 0, 1
	case n <= 4:
		variant, columns = 1, 4
	}
	return m.products[variant], cudrv.Grid{X: ceil(m.rows, productWarps), Y: ceil(n, columns), Z: 1, Threads: 32 * productWarps}
}

// multiply is W·input + b for every row of the input: stored in dst, and added to
// sum, where they are given. Both have W's rows as their width.
func (b *Backend) multiply(w model.Linear, dst, sum cudrv.Ptr) {
	m, in := w.W.(*matrix), &b.input
	f, grid := b.productLaunch(m, in.rows)
	p := b.launch(f, grid).ptrs(m.weights[:]...)
	switch m.reads {
	case asFloats:
		p.ptrs(in.to[0])
	case asCodes:
		p.ptrs(in.to[1:4]...)
	case asHalves:
		p.ptrs(in.to[4:]...).floats(m.factor, m.back)
	}
	p.ptrs(ptrOf(w.B), dst, sum).ints(m.rows, m.rows, m.cols, in.rows)
}
