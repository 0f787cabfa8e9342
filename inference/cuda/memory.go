//go:build cuda && cgo

package cuda

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"ragd/inference/cuda/cudrv"
	"ragd/inference/model"
	"ragd/inference/quant"
)

// ErrLoad says that weights or sizes handed to the backend do not fit it.
var ErrLoad = errors.New("cuda: cannot load")

// matrix is a weight matrix on the device.
type matrix struct {
	rows, cols int
	bytes      int64
	reads      form
	weights    [5]cudrv.Ptr      // codes, d, m, s, ms
	products   [3]cudrv.Function // for 1, up to 4 and more rows of activations; or see halfLaunch
	tensor     cudrv.Function    // for many rows of codes, where the device has tensor cores
	embed      cudrv.Function
	// Products in half precision take values times factor and give results times back;
	// rows that are looked up are stored in units of unit. All are powers of two.
	factor, back, unit float32
}

func (m *matrix) Rows() int    { return m.rows }
func (m *matrix) Cols() int    { return m.cols }
func (m *matrix) Bytes() int64 { return m.bytes }

// LoadMatrix copies a weight matrix to the device.
func (b *Backend) LoadMatrix(t quant.Type, rows, cols int, data []byte, _ model.Use) (model.Matrix, error) {
	rowBytes, err := t.RowBytes(cols)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLoad, err)
	}
	if rows < 1 || cols < 1 || rows > math.MaxInt32 || len(data)/rowBytes != rows || len(data)%rowBytes != 0 {
		return nil, fmt.Errorf("%w: %d bytes are not %d rows of %d", ErrLoad, len(data), rows, rowBytes)
	}
	p, err := pack(t, rows, cols, data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLoad, err)
	}
	m := b.newMatrix(p.format, rows, cols)
	if m.reads == asHalves {
		m.fitHalves(p)
	}
	at, err := b.upload(p.data)
	if err != nil {
		return nil, fmt.Errorf("%w: %d × %d %s: %w", ErrLoad, rows, cols, t, err)
	}
	m.weights = [5]cudrv.Ptr{at, at + cudrv.Ptr(p.d), at + cudrv.Ptr(p.m), at + cudrv.Ptr(p.s), at + cudrv.Ptr(p.ms)}
	return m, b.device.Do(func() error { return b.findFor(m, p.format.name) })
}

// newMatrix is a matrix that has no weights and no kernels yet.
func (b *Backend) newMatrix(f format, rows, cols int) *matrix {
	return &matrix{rows: rows, cols: cols, bytes: int64(f.lay(rows, cols).size), reads: b.formOf(f, cols), factor: 1, back: 1, unit: 1}
}

// findFor looks up the kernels of a format.
func (b *Backend) findFor(m *matrix, name string) (err error) {
	variants := [...]string{"_1", "_4", "_8"}
	if m.reads == asHalves {
		variants = [...]string{"_half_8", "_half_32", "_half_64"}
	}
	for i, variant := range variants {
		if m.products[i], err = b.find("product_" + name + variant); err != nil {
			return err
		}
	}
	if b.tensor && m.reads == asCodes {
		if m.tensor, err = b.find("product_" + name + "_tensor"); err != nil {
			return err
		}
	}
	m.embed, err = b.find("embed_" + name)
	return err
}

// upload copies data to memory of its own.
func (b *Backend) upload(data []byte) (cudrv.Ptr, error) {
	p, err := b.alloc(int64(len(data)))
	if err != nil {
		return 0, err
	}
	return p, b.device.Do(func() error { return cudrv.Upload(p, data) })
}

// vector is a float32 vector on the device.
type vector struct {
	ptr cudrv.Ptr
	n   int
}

func (v *vector) Len() int { return v.n }

// LoadVector copies a vector of weights to the device.
func (b *Backend) LoadVector(v []float32) (model.Vector, error) {
	if len(v) == 0 {
		return nil, fmt.Errorf("%w: an empty vector", ErrLoad)
	}
	p, err := b.upload(bytesOf(v))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLoad, err)
	}
	return &vector{p, len(v)}, nil
}

// ptrOf is a vector's address; no vector has none.
func ptrOf(v model.Vector) cudrv.Ptr {
	if v == nil {
		return 0
	}
	return v.(*vector).ptr
}

func bytesOf(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

func floatsOf(v []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(v))), len(v)/4)
}

// tensor is activations.
type tensor struct {
	width int
	buf   buffer
}

func (t *tensor) Width() int { return t.width }

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
func (b *Backend) resize(t *tensor, rows, width int) cudrv.Ptr {
	t.width = width
	return b.reserve(&t.buf, 4*int64(rows)*int64(width))
}
