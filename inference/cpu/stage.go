package cpu

import "ragd/inference/model"

var _ model.StageOps = (*Backend)(nil)

// Rows ends the step and returns x, row after row.
func (b *Backend) Rows(x model.Tensor) ([]float32, error) {
	b.seat.end()
	return x.(*tensor).data, nil
}

// SetRows sets x to values of another backend.
func (b *Backend) SetRows(x model.Tensor, values []float32) { copy(x.(*tensor).data, values) }
