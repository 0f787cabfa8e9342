package sample

import "math"

// MaxBest is the most candidates that SampleBest is ever asked to choose from.
const MaxBest = 64

// Best is how many of the largest logits SampleBest needs; 0 when the next token
// depends on more than MaxBest of them, or on a grammar or a penalty.
func (s *Sampler) Best() int {
	switch {
	case s.p.Grammar != nil || s.penalises():
		return 0
	case s.greedy():
		return 1
	case s.p.TopK > 0 && s.p.TopK <= MaxBest:
		return min(s.p.TopK, s.vocab)
	}
	return 0
}

// SampleBest draws the token that Sample draws from the whole row, given at least
// Best of its largest logits: larger ones first, equal ones by id, a NaN before all.
func (s *Sampler) SampleBest(ids []int32, logits []float32) (int32, error) {
	if len(ids) == 0 {
		return 0, ErrNoToken
	}
	switch top := float64(logits[0]); {
	case math.IsNaN(top) || top > math.MaxFloat32:
		return 0, ErrNotFinite
	case math.IsInf(top, -1):
		return 0, ErrNoToken
	}
	if s.greedy() {
		return ids[0], nil
	}
	s.out = s.out[:0]
	return s.drawFrom(s.finish(s.weighBest(ids, logits))), nil
}
