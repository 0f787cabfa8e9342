package engine

import (
	"fmt"
	"slices"

	"ragd/inference/model"
	"ragd/inference/sample"
)

// row is what a step gave for one place of an answer: all logits, or the best ones.
type row struct {
	logits []float32 // nil: best
	best   model.Best
}

// sample draws from the row.
func (r *row) sample(s *sample.Sampler) (int32, error) {
	if r.logits != nil {
		return s.Sample(r.logits)
	}
	return s.SampleBest(r.best.IDs, r.best.Logits)
}

// logProb is the log softmax at a token that was drawn from the row.
func (r *row) logProb(id int32) float64 {
	if r.logits != nil {
		return logProb(r.logits, id)
	}
	return float64(r.best.Logits[slices.Index(r.best.IDs, id)]) - r.best.LogSum
}

// decode runs the batch, after prefixes have come back from host memory. Where the
// next tokens lie among a few of the largest logits and the decoder can tell these, the
// others stay where they are.
func (e *Engine) decode() ([]row, error) {
	l := &e.loop
	l.drawn = l.drawn[:0]
	if moves := l.pool.Moves(); len(moves) > 0 {
		if err := e.mover.MoveBlocks(moves); err != nil {
			return nil, fmt.Errorf("move cache blocks: %w", err)
		}
	}
	if k := e.candidates(); k > 0 {
		best, err := e.best.ForwardBest(l.batch, k)
		for i := range best {
			l.drawn = append(l.drawn, row{best: best[i]})
		}
		return l.drawn, err
	}
	all, err := e.dec.Forward(l.batch)
	for _, logits := range all {
		l.drawn = append(l.drawn, row{logits: logits})
	}
	return l.drawn, err
}

// candidates is how many of the largest logits are enough for every row of the step;
// 0 when all are needed. It is one of two numbers, so that steps are alike.
func (e *Engine) candidates() int {
	if e.best == nil {
		return 0
	}
	k := 0
	for i := range e.loop.parts {
		p := &e.loop.parts[i]
		if p.logits == 0 {
			continue
		}
		n := p.sampler.Best()
		if n == 0 {
			return 0
		}
		k = max(k, n)
	}
	if k > 1 {
		k = sample.MaxBest
	}
	if k > e.best.MaxBest() {
		return 0
	}
	return k
}
