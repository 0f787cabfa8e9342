package kernel

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"
)

// Errors of New and Pack.
var (
	ErrType  = errors.New("kernel: unsupported tensor type")
	ErrShape = errors.New("kernel: bad matrix shape")
)

// maxElems bounds rows·cols so that no size computation can overflow: padding to
// PackRows rows of four bytes multiplies it by 32 at the most.
const maxElems = math.MaxInt >> 6

// Matrix is a weight matrix in the layout the kernels read, in memory of its
// own. Rows are padded with zeros to a multiple of PackRows.
type Matrix struct {
	rows, cols int
	typ        Type
	lay        layout // of a quantised type
	data       []byte // quantised, F16 or BF16
	f32        []float32
	strip      int // bytes (or float32 elements) of PackRows rows
}

// New makes an empty matrix of the type; Fill sets its rows, strips of them in
// parallel if the caller likes. The caller vouches for a size that fits memory.
func New(t Type, rows, cols int) (*Matrix, error) {
	m, err := shaped(t, rows, cols)
	if err != nil {
		return nil, err
	}
	m.allocate()
	return m, nil
}

// Size is the memory that the weights of New's matrix take, in bytes; 0 where New fails.
func Size(t Type, rows, cols int) int64 {
	m, err := shaped(t, rows, cols)
	if err != nil {
		return 0
	}
	n := (int64(rows) + PackRows - 1) / PackRows * int64(m.strip)
	if t == F32 {
		n *= 4
	}
	return n
}

// shaped is a matrix without memory yet.
func shaped(t Type, rows, cols int) (*Matrix, error) {
	if rows <= 0 || cols <= 0 || rows > maxElems/cols {
		return nil, fmt.Errorf("%w: %d × %d", ErrShape, rows, cols)
	}
	m := &Matrix{rows: rows, cols: cols, typ: t}
	switch t {
	case F32:
		m.strip = PackRows * cols
		return m, nil
	case F16, BF16:
		m.strip = PackRows * cols * 2
		return m, nil
	}
	lay, ok := layouts[t]
	if !ok {
		return nil, fmt.Errorf("%w: %d", ErrType, t)
	}
	if cols%lay.cols() != 0 {
		return nil, fmt.Errorf("%w: %d columns are not whole blocks of %d", ErrShape, cols, lay.cols())
	}
	m.lay = lay
	m.strip = cols / lay.cols() * lay.group()
	return m, nil
}

func (m *Matrix) allocate() {
	size := (m.rows + PackRows - 1) / PackRows * m.strip
	if m.typ == F32 {
		m.f32 = floats(allocate(4 * size))
		return
	}
	m.data = allocate(size)
}

// Pack repacks rows × cols weights stored row after row as GGUF stores the type.
func Pack(t Type, rows, cols int, src []byte) (*Matrix, error) {
	m, err := shaped(t, rows, cols)
	if err != nil {
		return nil, err
	}
	if n := m.SrcRowBytes(); len(src) != rows*n {
		return nil, fmt.Errorf("%w: %d bytes for %d rows of %d", ErrShape, len(src), rows, n)
	}
	m.allocate()
	return m, m.Fill(0, rows, src)
}

// floats views bytes that begin a cache line as float32 values.
func floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

// SrcRowBytes is the size of one row as GGUF stores it.
func (m *Matrix) SrcRowBytes() int {
	switch m.typ {
	case F32:
		return m.cols * 4
	case F16, BF16:
		return m.cols * 2
	}
	return m.cols / m.lay.cols() * m.lay.srcLen
}

// Fill packs rows [lo,hi) from src, which holds these rows only. lo must be a
// multiple of PackRows; calls for different rows may run at the same time when
// hi is a multiple too or the last row.
func (m *Matrix) Fill(lo, hi int, src []byte) error {
	if lo < 0 || hi > m.rows || lo > hi || lo%PackRows != 0 {
		return fmt.Errorf("%w: rows %d to %d of %d", ErrShape, lo, hi, m.rows)
	}
	n := m.SrcRowBytes()
	if len(src) != (hi-lo)*n {
		return fmt.Errorf("%w: %d bytes for %d rows of %d", ErrShape, len(src), hi-lo, n)
	}
	for r := lo; r < hi; r++ {
		row := src[(r-lo)*n : (r-lo+1)*n]
		switch m.typ {
		case F32:
			m.fillF32(r, row)
		case F16, BF16:
			m.fillF16(r, row)
		default:
			m.fillQuant(r, row)
		}
	}
	return nil
}

func (m *Matrix) fillF32(r int, row []byte) {
	strip := m.f32[r/PackRows*m.strip:]
	for c := range m.cols {
		strip[c*PackRows+r%PackRows] = math.Float32frombits(binary.LittleEndian.Uint32(row[4*c:]))
	}
}

func (m *Matrix) fillF16(r int, row []byte) {
	strip := m.data[r/PackRows*m.strip:]
	for c := range m.cols {
		copy(strip[2*(c*PackRows+r%PackRows):], row[2*c:2*c+2])
	}
}

// Rows and Cols are the shape: a row is one output of a product.
func (m *Matrix) Rows() int { return m.rows }

// Cols is the length of a row.
func (m *Matrix) Cols() int { return m.cols }

// Type is the type the matrix was packed from.
func (m *Matrix) Type() Type { return m.typ }

// Bytes is the memory the weights take.
func (m *Matrix) Bytes() int64 { return int64(len(m.data)) + 4*int64(len(m.f32)) }

// Quantized says whether MatMul (else MatMulF32) computes with this matrix.
func (m *Matrix) Quantized() bool { return m.lay.bits != 0 }

// Row decodes row r into dst (Cols values). The values are those the format
// defines, to the last bit.
func (m *Matrix) Row(dst []float32, r int) {
	lane := r % PackRows
	switch m.typ {
	case F32:
		strip := m.f32[r/PackRows*m.strip:]
		for c := range m.cols {
			dst[c] = strip[c*PackRows+lane]
		}
	case F16, BF16:
		strip := m.data[r/PackRows*m.strip:]
		for c := range m.cols {
			dst[c] = m.widen(binary.LittleEndian.Uint16(strip[2*(c*PackRows+lane):]))
		}
	default:
		m.rowQuant(dst, r)
	}
}

func (m *Matrix) widen(h uint16) float32 {
	if m.typ == BF16 {
		return f32FromBF16(h)
	}
	return f32FromF16(h)
}
