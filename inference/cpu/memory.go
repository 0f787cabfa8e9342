package cpu

import (
	"errors"
	"fmt"
	"slices"

	"ragd/inference/cpu/kernel"
	"ragd/inference/model"
	"ragd/inference/quant"
)

// ErrLoad says that weights or sizes handed to the backend do not fit it.
var ErrLoad = errors.New("cpu: cannot load")

// matrix is a weight matrix: packed for products, or as it was stored when it is
// only looked up.
type matrix struct {
	rows, cols int
	packed     *kernel.Matrix
	typ        quant.Type
	stored     []byte
	rowBytes   int
}

func (m *matrix) Rows() int { return m.rows }
func (m *matrix) Cols() int { return m.cols }

func (m *matrix) Bytes() int64 {
	if m.packed != nil {
		return m.packed.Bytes()
	}
	return int64(len(m.stored))
}

// row decodes one row.
func (m *matrix) row(dst []float32, r int) {
	if m.packed != nil {
		m.packed.Row(dst, r)
		return
	}
	// The lengths were checked when the matrix was loaded.
	_ = quant.Decode(m.typ, dst, m.stored[r*m.rowBytes:(r+1)*m.rowBytes])
}

// LoadMatrix packs a weight matrix, or copies it when it is only for looking up.
func (b *Backend) LoadMatrix(t quant.Type, rows, cols int, data []byte, use model.Use) (model.Matrix, error) {
	rowBytes, err := t.RowBytes(cols)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLoad, err)
	}
	if rows < 1 || len(data)/rowBytes != rows || len(data)%rowBytes != 0 {
		return nil, fmt.Errorf("%w: %d bytes are not %d rows of %d", ErrLoad, len(data), rows, rowBytes)
	}
	m := &matrix{rows: rows, cols: cols, typ: t, rowBytes: rowBytes}
	if use&model.UseProduct == 0 {
		m.stored = slices.Clone(data)
		return m, nil
	}
	m.packed, err = b.pack(m, data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLoad, err)
	}
	return m, nil
}

// pack lays a matrix out for the kernels, strips of rows in parallel.
func (b *Backend) pack(m *matrix, data []byte) (*kernel.Matrix, error) {
	typ := m.typ
	if b.float32 {
		typ = quant.F32
	}
	packed, err := kernel.New(kernel.Type(typ), m.rows, m.cols)
	if err != nil {
		return nil, err
	}
	const strip = 8 * kernel.PackRows
	t := &packTask{from: m, data: data, to: packed, strip: strip, widen: typ != m.typ}
	t.errs = make([]error, (m.rows+strip-1)/strip)
	b.run(t, len(t.errs))
	return packed, errors.Join(t.errs...)
}

type packTask struct {
	from  *matrix
	data  []byte
	to    *kernel.Matrix
	strip int
	widen bool // decode to float32 first
	errs  []error
}

func (t *packTask) do(_, item int) {
	lo := item * t.strip
	hi := min(lo+t.strip, t.from.rows)
	src := t.data[lo*t.from.rowBytes : hi*t.from.rowBytes]
	if t.widen {
		values := make([]float32, (hi-lo)*t.from.cols)
		wide := make([]byte, 4*len(values))
		t.errs[item] = errors.Join(quant.Decode(t.from.typ, values, src), quant.Encode(quant.F32, wide, values))
		src = wide
	}
	if t.errs[item] == nil {
		t.errs[item] = t.to.Fill(lo, hi, src)
	}
}

// vector is a float32 vector.
type vector []float32

func (v vector) Len() int { return len(v) }

// LoadVector copies a vector of weights.
func (b *Backend) LoadVector(v []float32) (model.Vector, error) {
	return vector(slices.Clone(v)), nil
}

// values unwraps a vector of this backend; nil stays nil.
func values(v model.Vector) []float32 {
	if v == nil {
		return nil
	}
	return v.(vector)
}

// tensor is activations.
type tensor struct {
	width int
	data  []float32
}

func (t *tensor) Width() int { return t.width }

func (t *tensor) row(r int) []float32 { return t.data[r*t.width : (r+1)*t.width] }

// NewTensor makes activations that follow the rows of the step.
func (b *Backend) NewTensor(width int) (model.Tensor, error) {
	if width < 1 {
		return nil, fmt.Errorf("%w: activations of width %d", ErrLoad, width)
	}
	t := &tensor{width: width}
	b.tensors = append(b.tensors, t)
	return t, nil
}

// resize makes t hold rows × width values.
func (t *tensor) resize(rows, width int) {
	t.width = width
	t.data = grow(t.data, rows*width)
}
