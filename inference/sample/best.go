package sample

import "math"

// MaxBest is the most candidates that SampleBest is ever asked to choose from, and how
// many tokens come first in a draw from all: see lead.
const MaxBest = 64

// SumError is how far the sum handed to SampleBest may be off, as a part of itself.
//
// A sum in float32 stays well below. Rounding a difference, the scale and their product
// moves an exponent a by 3·2⁻²⁴·|a|; terms of e^a, of which there are n, are a·n·e^a /
// (1 + n·e^a) ≤ ln n of the sum, which makes 2.4e-6 for 2¹⁸ tokens, and twice that where
// a sum is put together from parts with other maxima. Two exponentials and 30 additions
// in a row add 34·2⁻²⁴ = 2e-6.
const SumError = 1.0 / (1 << 14)

// slack is more than what rounding in float64 does to sums of weights, and less than
// anything that matters.
const slack = 1e-12

// Best is how many of the largest logits SampleBest wants; 0 when the next token
// depends on a grammar, so that it can do nothing with them.
func (s *Sampler) Best() int {
	switch {
	case s.p.Grammar != nil:
		return 0
	case s.greedy():
		return 1
	case s.p.TopK > 0:
		return min(s.p.TopK, MaxBest, s.vocab)
	}
	return min(MaxBest, s.vocab)
}

// Penalised are the tokens whose logits are penalised, each once, and by how much; they
// are valid until the next Accept.
func (s *Sampler) Penalised() (ids []int32, penalty float32) {
	if !s.penalises() {
		return nil, 1
	}
	return s.seen, s.p.RepetitionPenalty
}

// Scale is what logits are multiplied by: 1/temperature, or 1 where that says nothing.
func (s *Sampler) Scale() float32 {
	if s.greedy() {
		return 1
	}
	return float32(1 / float64(s.p.Temperature))
}

// SampleBest draws the token that Sample draws from the whole row, given at least Best of
// its largest logits after penalties (larger ones first, equal ones by id, a NaN before
// all) and sum, Σ exp((logit − largest) · Scale) over the row, or 0 where it is not known.
// Where that does not decide the draw, decided is false and nothing was drawn: Sample is
// to do it.
func (s *Sampler) SampleBest(ids []int32, logits []float32, sum float64) (id int32, decided bool, err error) {
	if s.p.Grammar != nil {
		return 0, false, nil
	}
	if len(ids) == 0 {
		return 0, false, ErrNoToken
	}
	switch top := float64(logits[0]); {
	case math.IsNaN(top) || top > math.MaxFloat32:
		return 0, false, ErrNotFinite
	case math.IsInf(top, -1):
		return 0, false, ErrNoToken
	}
	if s.greedy() {
		return ids[0], true, nil
	}
	id, decided = s.drawPart(s.minPOf(s.topPOf(s.weighBest(ids, logits, sum))))
	return id, decided, nil
}

// part is the beginning of what a draw is from.
type part struct {
	items []item
	// lo and hi are bounds of the weight of all items, those that are not known included.
	lo, hi float64
	ended  bool // there are no others
}

// weighBest is weigh for a row of which only the largest logits are known, and about the
// sum of all weights.
func (s *Sampler) weighBest(ids []int32, logits []float32, whole float64) part {
	k := s.p.TopK
	if k == 0 || k > s.vocab {
		k = s.vocab
	}
	s.items = s.items[:0]
	top, scale := logits[0], 1/float64(s.p.Temperature)
	floor := top + float32(negligible/scale)
	for i, v := range logits[:min(k, len(logits))] {
		if v >= floor {
			s.items = append(s.items, item{id: ids[i], logit: v})
		}
	}
	items := s.exponentials(top, scale)
	mass := sum(items)
	if len(items) == k || len(items) < len(ids) {
		return part{items: items, lo: mass, hi: mass, ended: true}
	}
	p := part{items: items, lo: mass, hi: math.Inf(1)}
	if whole >= 1 { // the largest has weight 1
		p.hi = max(mass, whole*(1+SumError))
		if k == s.vocab {
			p.lo = max(mass, whole*(1-SumError))
		}
	}
	// The others of the k weigh no more than the last one each.
	p.hi = min(p.hi, (mass+float64(k-len(items))*items[len(items)-1].weight)*(1+slack))
	return p
}

// topPOf is topP for a part.
func (s *Sampler) topPOf(p part) part {
	if !s.cutsNucleus() {
		return p
	}
	// What Sample adds up in the order of the row may round otherwise.
	low, high := s.nucleusGoal(p.lo*(1-slack)), s.nucleusGoal(p.hi*(1+slack))
	n, mass := reach(p.items, low)
	most, beyond := reach(p.items, high)
	if n == most && (beyond >= high || p.ended) {
		return part{items: p.items[:n], lo: mass, hi: mass, ended: true}
	}
	if beyond < high && !p.ended {
		// The nucleus ends with the token that reaches the goal.
		beyond = (high + p.items[len(p.items)-1].weight) * (1 + slack)
	}
	return part{items: p.items[:n], lo: max(mass, low), hi: beyond}
}

// reach is how many items, the first ones, it takes to reach a goal, and what they
// weigh: all where they do not reach it.
func reach(items []item, goal float64) (n int, mass float64) {
	for ; n < len(items) && mass < goal; n++ {
		mass += items[n].weight
	}
	return n, mass
}

// minPOf is minP for a part, most probable first.
func (s *Sampler) minPOf(p part) part {
	if s.p.MinP == 0 {
		return p
	}
	last := p.items[len(p.items)-1].weight
	p.items = s.minP(p.items)
	p.lo = sum(p.items)
	if last < float64(s.p.MinP)*(1-slack) {
		p.ended = true // what follows weighs no more
	}
	return p
}

// drawPart draws the token that draw would draw from all, where all weights between the
// bounds lead to the same: the place of the draw grows with the weight of all.
func (s *Sampler) drawPart(p part) (id int32, decided bool) {
	if p.ended {
		return s.draw(p.items), true
	}
	if len(p.items) < 2 {
		return 0, false // there may be nothing to choose, which would take no number
	}
	u := s.number()
	at := pick(p.items, u*p.lo)
	if at == len(p.items) || at != pick(p.items, u*p.hi) {
		return 0, false
	}
	s.next = none
	return p.items[at].id, true
}
