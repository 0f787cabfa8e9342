package cpu

import (
	"errors"
	"fmt"
	"sync"

	"ragd/inference/cpu/kernel"
	"ragd/inference/quant"
)

// ErrRows: rows of the wrong size.
var ErrRows = errors.New("cpu: rows of the wrong size")

// RowProducts makes the dot products of a few float32 rows, which it rounds to q8_0,
// with many int8 rows: those of a question's token states with a passage's. It is
// safe for concurrent use and computes on the caller's thread.
type RowProducts struct {
	set     *kernel.Set
	rows    *kernel.Matrix
	dim     int
	scratch sync.Pool // of *kernel.Acts
}

// NewRowProducts prepares n rows of dim values; set nil means the fastest one.
func NewRowProducts(set *kernel.Set, rows []float32, dim int) (*RowProducts, error) {
	if dim < 1 || len(rows) == 0 || len(rows)%dim != 0 {
		return nil, fmt.Errorf("%w: %d values are not whole rows of %d", ErrRows, len(rows), dim)
	}
	if set == nil {
		set = kernel.Best()
	}
	n, wide := len(rows)/dim, padded(dim)
	flat := make([]float32, n*wide)
	for r := range n {
		copy(flat[r*wide:], rows[r*dim:(r+1)*dim])
	}
	packed := make([]byte, len(flat)/quant.Q8_0.BlockSize()*quant.Q8_0.BlockBytes())
	if err := quant.Encode(quant.Q8_0, packed, flat); err != nil {
		return nil, err
	}
	m, err := kernel.Pack(kernel.Q8_0, n, wide, packed)
	if err != nil {
		return nil, err
	}
	p := &RowProducts{set: set, rows: m, dim: dim}
	p.scratch.New = func() any { return new(kernel.Acts) }
	return p, nil
}

// padded is dim in whole blocks.
func padded(dim int) int { return ceil(dim, kernel.BlockCols) * kernel.BlockCols }

// Multiply sets dst[i·n+j] to scales[i] times the product of row i of values with the
// prepared row j of n. It fails with ErrRows.
func (p *RowProducts) Multiply(dst []float32, values []int8, scales []float32) error {
	n := len(scales)
	if len(values) != n*p.dim || len(dst) != n*p.rows.Rows() {
		return fmt.Errorf("%w: %d values and %d results for %d rows of %d and %d prepared", ErrRows, len(values), len(dst), n, p.dim, p.rows.Rows())
	}
	if n == 0 {
		return nil
	}
	acts := p.scratch.Get().(*kernel.Acts)
	defer p.scratch.Put(acts)
	acts.Resize(n, p.rows.Cols())
	for i, scale := range scales {
		acts.Take(i, values[i*p.dim:(i+1)*p.dim], scale)
	}
	p.set.MatMul(dst, p.rows.Rows(), acts, 0, n, p.rows, 0, p.rows.Rows())
	return nil
}
