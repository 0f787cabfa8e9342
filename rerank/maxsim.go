package rerank

import (
	"fmt"
	"math"

	"ragd/ingest"
	"ragd/retrieve"
)

// MaxSim compares a question with the passages of a pool, token by token. The states of
// XLM-RoBERTa encoders all lie in about one direction (the mean of unit states is .77
// long for multilingual-e5-small), so the mean over the pool is subtracted from all
// before cosines are taken. It belongs to one goroutine.
type MaxSim struct {
	weights  []float32 // of the question's tokens, sum 1
	offset   []float32 // product of each centred row of the question with the mean
	square   float32   // of the mean's length
	products Products  // with the centred rows, then the mean
	dst      []float32
	best     []float32
}

// NewMaxSim prepares a question's states of dim values for the passages of a pool.
func NewMaxSim(q retrieve.States, dim int, pool []ingest.States, prepare func(rows []float32, dim int) (Products, error)) (*MaxSim, error) {
	mean, err := meanState(pool, dim)
	if err != nil {
		return nil, err
	}
	n := len(q.Weights)
	m := &MaxSim{weights: make([]float32, n), offset: make([]float32, n), best: make([]float32, n), square: Cosine(mean, mean)}
	sum := float32(0)
	for _, w := range q.Weights {
		sum += w
	}
	rows := make([]float32, (n+1)*dim)
	for i, w := range q.Weights {
		row := rows[i*dim : (i+1)*dim]
		copy(row, q.Rows[i*dim:])
		normalise(row)
		for k := range row {
			row[k] -= mean[k]
		}
		normalise(row)
		m.weights[i], m.offset[i] = w/sum, Cosine(row, mean)
	}
	copy(rows[n*dim:], mean)
	m.products, err = prepare(rows, dim)
	return m, err
}

// meanState is the mean of all states of a pool.
func meanState(pool []ingest.States, dim int) ([]float32, error) {
	mean, n := make([]float32, dim), 0
	for i := range pool {
		s := &pool[i]
		if len(s.Values) != s.Tokens()*dim {
			return nil, fmt.Errorf("%d token states of %d values, not %d each", s.Tokens(), len(s.Values), dim)
		}
		for t, scale := range s.Scales {
			for k, v := range s.Values[t*dim : (t+1)*dim] {
				mean[k] += scale * float32(v)
			}
		}
		n += s.Tokens()
	}
	for k := range mean {
		mean[k] /= float32(max(n, 1))
	}
	return mean, nil
}

// normalise scales v to length one; zeros stay.
func normalise(v []float32) {
	square := Cosine(v, v)
	if square == 0 {
		return
	}
	scale := float32(1 / math.Sqrt(float64(square)))
	for i := range v {
		v[i] *= scale
	}
}

// leastSquare keeps a state that is the mean itself from being divided by nothing.
const leastSquare = 1e-6

// Score is the mean over the question's tokens, by their weights, of the best cosine to
// a token of a passage of the pool, NaN for a passage without states.
func (m *MaxSim) Score(s *ingest.States) (float32, error) {
	n := len(m.weights)
	if s.Tokens() == 0 {
		return float32(math.NaN()), nil
	}
	wide := n + 1
	if need := s.Tokens() * wide; cap(m.dst) < need {
		m.dst = make([]float32, need)
	}
	dst := m.dst[:s.Tokens()*wide]
	if err := m.products.Multiply(dst, s.Values, s.Scales); err != nil {
		return 0, err
	}
	for j := range m.best {
		m.best[j] = float32(math.Inf(-1))
	}
	for ; len(dst) > 0; dst = dst[wide:] {
		// The states have length one, so this is the centred one's.
		square := max(1-2*dst[n]+m.square, leastSquare)
		scale := float32(1 / math.Sqrt(float64(square)))
		for j, v := range dst[:n] {
			m.best[j] = max(m.best[j], (v-m.offset[j])*scale)
		}
	}
	score := float32(0)
	for j, v := range m.best {
		score += m.weights[j] * v
	}
	return score, nil
}
