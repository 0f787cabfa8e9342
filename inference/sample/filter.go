package sample

import (
	"math"
	"slices"
)

// item is a token on its way through the filters. Weights are probabilities
// up to a factor: exp((logit − largest) / temperature).
type item struct {
	id     int32
	logit  float32
	weight float64
}

// before is the order of preference: larger logits first, then lower ids.
func (a item) before(b item) bool {
	return a.logit > b.logit || a.logit == b.logit && a.id < b.id
}

// negligible is the exponent below which a token cannot change a float64 sum
// of weights in which the largest is 1, however large the vocabulary.
const negligible = -60

// rounding is how far under p a sum of probabilities counts as reaching it: p
// and the logits are float32.
const rounding = 1e-6

// weigh applies temperature and top-k. The items come in the order of the row, or most
// probable first where there is a top-k.
func (s *Sampler) weigh(row []float32, top float32) []item {
	s.items = s.items[:0]
	k := s.p.TopK
	if k == 0 || k > len(row) {
		k = len(row)
	}
	scale := 1 / float64(s.p.Temperature)
	floor := top + float32(negligible/scale)
	for i, v := range row {
		if v < floor {
			continue
		}
		it := item{id: int32(i), logit: v}
		switch {
		case len(s.items) < k:
			s.items = append(s.items, it)
			if len(s.items) == k && k < len(row) {
				heapify(s.items, worst)
			}
		case it.before(s.items[0]):
			s.items[0] = it
			sift(s.items, 0, worst)
		}
	}
	if s.p.TopK > 0 {
		slices.SortFunc(s.items, preference)
	}
	return s.exponentials(top, scale)
}

func (s *Sampler) exponentials(top float32, scale float64) []item {
	for i := range s.items {
		it := &s.items[i]
		it.weight = math.Exp((float64(it.logit) - float64(top)) * scale)
	}
	return s.items
}

// preference orders items as before does.
func preference(a, b item) int {
	if a.before(b) {
		return -1
	}
	return 1
}

// cutsNucleus reports whether there is a top-p that leaves something out.
func (s *Sampler) cutsNucleus() bool { return s.p.TopP > 0 && s.p.TopP < 1 }

// nucleusGoal is what the nucleus weighs at least, of so much for all.
func (s *Sampler) nucleusGoal(total float64) float64 {
	return float64(s.p.TopP) * total * (1 - rounding)
}

// topP moves the nucleus to the front and returns it, most probable first.
func (s *Sampler) topP(items []item) []item {
	if !s.cutsNucleus() {
		return items
	}
	total := sum(items)
	// Tokens under this weight cannot be in the nucleus: all of them together
	// weigh less than what it leaves out.
	floor := (total - float64(s.p.TopP)*total) / float64(len(items))
	kept := items[:0]
	for _, it := range items {
		if it.weight >= floor {
			kept = append(kept, it)
		}
	}
	// Take the best off a heap, each to the slot that the heap gives up at the
	// end, until the goal is reached.
	heapify(kept, best)
	n, goal := len(kept), s.nucleusGoal(total)
	for mass := 0.0; n > 0 && mass < goal; n-- {
		mass += kept[0].weight
		kept[0], kept[n-1] = kept[n-1], kept[0]
		sift(kept[:n-1], 0, best)
	}
	nucleus := kept[n:]
	for i, j := 0, len(nucleus)-1; i < j; i, j = i+1, j-1 {
		nucleus[i], nucleus[j] = nucleus[j], nucleus[i]
	}
	return nucleus
}

// minP drops tokens that are improbable beside the best one, whose weight is 1.
func (s *Sampler) minP(items []item) []item {
	if s.p.MinP == 0 {
		return items
	}
	kept := items[:0]
	for _, it := range items {
		if it.weight >= float64(s.p.MinP) {
			kept = append(kept, it)
		}
	}
	return kept
}

// lead moves the MaxBest most probable items to the front, in their order, so that where
// most draws end can be known without the others.
func lead(items []item) {
	front := items[:min(MaxBest, len(items))]
	heapify(front, worst)
	for i := len(front); i < len(items); i++ {
		if items[i].before(front[0]) {
			front[0], items[i] = items[i], front[0]
			sift(front, 0, worst)
		}
	}
	slices.SortFunc(front, preference)
}

func sum(items []item) float64 {
	total := 0.0
	for _, it := range items {
		total += it.weight
	}
	return total
}

// worst and best say which of two items stands nearer to the root of a heap.
func worst(a, b item) bool { return b.before(a) }
func best(a, b item) bool  { return a.before(b) }

func heapify(h []item, above func(a, b item) bool) {
	for i := len(h)/2 - 1; i >= 0; i-- {
		sift(h, i, above)
	}
}

// sift moves item i down to its place.
func sift(h []item, i int, above func(a, b item) bool) {
	for {
		child := 2*i + 1
		if child >= len(h) {
			return
		}
		if child+1 < len(h) && above(h[child+1], h[child]) {
			child++
		}
		if !above(h[child], h[i]) {
			return
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
}
