package model

import (
	"errors"
	"fmt"
)

// Choice says how the largest logits of a row are found: which logits are penalised
// before, and what their sum is for.
type Choice struct {
	// Seen are tokens whose logits are penalised, each once, at most MaxPenalised.
	Seen []int32
	// Penalty divides the positive logits of Seen and multiplies the others (CTRL,
	// arXiv 1909.05858), in float32. It is above 0.
	Penalty float32
	// Scale is what logits are multiplied by in Best.Sum: 1/temperature, above 0.
	Scale float32
}

// MaxPenalised is the most tokens that a row may have penalised.
const MaxPenalised = 1024

// Best is what a draw needs of a row of logits when it is known to end among the
// largest ones.
type Best struct {
	// IDs and Logits are the largest logits of the row as penalised, larger ones first,
	// equal ones by id. Should the row hold a NaN, it comes first.
	IDs    []int32
	Logits []float32
	// Raw are the logits of IDs as the model gave them.
	Raw []float32
	// LogSum is log Σ exp(logit) over the whole row as the model gave it, in float32.
	LogSum float64
	// Sum is Σ exp((logit − largest) · Scale) over the whole row as penalised, in float32.
	Sum float64
}

// BestOps is what a backend may have besides Ops: a device then sends a few
// candidates a row to the host, not the row.
type BestOps interface {
	// MaxBest is the most candidates of a row.
	MaxBest() int
	// BestLogits is Logits, of which only the k largest of each row are returned, or all of a
	// shorter row. There is a choice for each row. They are valid until the next step.
	BestLogits(x Tensor, n Norm, w Matrix, k int, rows []Choice) ([]Best, error)
	// BestRow is all logits, as the model gave them, of a row of the last step, which was
	// one of BestLogits. They are valid until the next call.
	BestRow(row int) ([]float32, error)
}

// BestDecoder is a Decoder that may be asked for the largest logits only.
type BestDecoder interface {
	Decoder
	// MaxBest is the most candidates of a row; 0 when its backend has no BestOps.
	MaxBest() int
	// ForwardBest is Forward with the k largest logits of each row, 1 ≤ k ≤ MaxBest. There
	// is a choice for each row of logits, in batch order.
	ForwardBest(b Batch, k int, rows []Choice) ([]Best, error)
	// BestRow is the row of logits that Forward would have given, after a ForwardBest. It
	// is valid until the next call.
	BestRow(row int) ([]float32, error)
}

// ErrNoBest says that more was asked for than the backend chooses.
var ErrNoBest = errors.New("the backend does not choose so many logits")

// MaxBest is the most candidates of a row that ForwardBest gives.
func (m *Llama) MaxBest() int {
	if ops, ok := m.last().ops.(BestOps); ok {
		return ops.MaxBest()
	}
	return 0
}

// ForwardBest is Forward with the k largest logits of each row.
func (m *Llama) ForwardBest(b Batch, k int, rows []Choice) ([]Best, error) {
	if k < 1 || k > m.MaxBest() {
		return nil, ErrNoBest
	}
	if err := checkChoices(b, rows); err != nil {
		return nil, err
	}
	if err := m.run(b); err != nil {
		return nil, err
	}
	last := m.last()
	return last.ops.(BestOps).BestLogits(last.x, m.norm, m.output, k, rows)
}

// BestRow is a whole row of logits after ForwardBest.
func (m *Llama) BestRow(row int) ([]float32, error) {
	if m.MaxBest() == 0 {
		return nil, ErrNoBest
	}
	return m.last().ops.(BestOps).BestRow(row)
}

func checkChoices(b Batch, rows []Choice) error {
	n := 0
	for i := range b {
		n += b[i].Logits
	}
	if n != len(rows) {
		return fmt.Errorf("%w: %d choices for %d rows of logits", ErrBatch, len(rows), n)
	}
	for i := range rows {
		if c := &rows[i]; len(c.Seen) > MaxPenalised || !(c.Penalty > 0) || !(c.Scale > 0) {
			return fmt.Errorf("%w: row %d: %d tokens penalised by %g, logits scaled by %g", ErrNoBest, i, len(c.Seen), c.Penalty, c.Scale)
		}
	}
	return nil
}
