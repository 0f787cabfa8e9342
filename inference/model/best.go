package model

import "errors"

// Best is what a draw needs of a row of logits when it is known to end among the
// largest ones.
type Best struct {
	// IDs and Logits are the largest logits of the row, larger ones first, equal ones by
	// id. Should the row hold a NaN, it comes first.
	IDs    []int32
	Logits []float32
	// LogSum is log Σ exp(logit) over the whole row, in float32.
	LogSum float64
}

// BestOps is what a backend may have besides Ops: a device then sends a few
// candidates a row to the host, not the row.
type BestOps interface {
	// MaxBest is the most candidates of a row.
	MaxBest() int
	// BestLogits is Logits, of which only the k largest of each row are returned, or all of a
	// shorter row. They are valid until the next step.
	BestLogits(x Tensor, n Norm, w Matrix, k int) ([]Best, error)
}

// BestDecoder is a Decoder that may be asked for the largest logits only.
type BestDecoder interface {
	Decoder
	// MaxBest is the most candidates of a row; 0 when its backend has no BestOps.
	MaxBest() int
	// ForwardBest is Forward with the k largest logits of each row, 1 ≤ k ≤ MaxBest.
	ForwardBest(b Batch, k int) ([]Best, error)
}

// ErrNoBest says that more candidates were asked for than the backend chooses.
var ErrNoBest = errors.New("the backend does not choose so many logits")

// MaxBest is the most candidates of a row that ForwardBest gives.
func (m *Llama) MaxBest() int {
	if ops, ok := m.last().ops.(BestOps); ok {
		return ops.MaxBest()
	}
	return 0
}

// ForwardBest is Forward with the k largest logits of each row.
func (m *Llama) ForwardBest(b Batch, k int) ([]Best, error) {
	if k < 1 || k > m.MaxBest() {
		return nil, ErrNoBest
	}
	if err := m.run(b); err != nil {
		return nil, err
	}
	last := m.last()
	return last.ops.(BestOps).BestLogits(last.x, m.norm, m.output, k)
}
