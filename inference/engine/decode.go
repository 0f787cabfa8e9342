package engine

import (
	"fmt"
	"slices"

	"ragd/inference/model"
	"ragd/inference/sample"
)

// row is what a step gave for one place of an answer: all logits, or the best ones and
// a way to the others.
type row struct {
	logits []float32   // nil while only the best are here
	best   *model.Best // nil: nothing can be drawn from them
	number int         // of the step
	fetch  func(number int) ([]float32, error)
}

// sample draws from the row; all of it is fetched only where the best do not decide.
func (r *row) sample(s *sample.Sampler) (int32, error) {
	if r.logits == nil && r.best != nil {
		id, decided, err := s.SampleBest(r.best.IDs, r.best.Logits, r.best.Sum)
		if decided || err != nil {
			return id, err
		}
	}
	if r.logits == nil {
		logits, err := r.fetch(r.number)
		if err != nil {
			return 0, fmt.Errorf("fetch logits: %w", err)
		}
		r.logits = logits
	}
	return s.Sample(r.logits)
}

// logProb is the log softmax, before penalties, at a token that was drawn from the row.
func (r *row) logProb(id int32) float64 {
	if r.logits != nil {
		return logProb(r.logits, id)
	}
	return float64(r.best.Raw[slices.Index(r.best.IDs, id)]) - r.best.LogSum
}

// decode runs the batch, after prefixes have come back from host memory. Where a decoder
// can tell the largest logits and an answer can be drawn from them, the others stay
// where they are.
func (e *Engine) decode() ([]row, error) {
	l := &e.loop
	l.drawn = l.drawn[:0]
	if moves := l.pool.Moves(); len(moves) > 0 {
		if err := e.mover.MoveBlocks(moves); err != nil {
			return nil, fmt.Errorf("move cache blocks: %w", err)
		}
	}
	if k := e.candidates(); k > 0 {
		best, err := e.best.ForwardBest(l.batch, k, l.choices)
		return e.pair(best), err
	}
	all, err := e.dec.Forward(l.batch)
	for _, logits := range all {
		l.drawn = append(l.drawn, row{logits: logits})
	}
	return l.drawn, err
}

// pair gives each row of the step its largest logits.
func (e *Engine) pair(best []model.Best) []row {
	l := &e.loop
	for i := range l.parts {
		p := &l.parts[i]
		for range min(p.logits, len(best)-len(l.drawn)) {
			r := row{number: len(l.drawn), fetch: l.fetch}
			if p.best > 0 {
				r.best = &best[r.number]
			}
			l.drawn = append(l.drawn, r)
		}
	}
	return l.drawn
}

// fetchRow is all logits of a row of which the step told the largest.
func (e *Engine) fetchRow(number int) ([]float32, error) {
	e.loop.fetched++
	return e.best.BestRow(number)
}

// candidates is how many of the largest logits the step is to tell, with the choices of
// its rows; 0 when no row could be drawn from them. It is one of two numbers, so that
// steps are alike.
func (e *Engine) candidates() int {
	l := &e.loop
	l.choices, l.penalised = l.choices[:0], l.penalised[:0]
	if e.best == nil {
		return 0
	}
	k := 0
	for i := range l.parts {
		k = max(k, l.choose(&l.parts[i]))
	}
	if k > 1 {
		k = sample.MaxBest
	}
	if k > e.best.MaxBest() {
		return 0
	}
	return k
}

// choose appends the choices of the part's rows and says how many of the largest logits
// its draws want; 0 when they cannot do with these. A row after a drafted token is drawn
// from only where that was accepted, and then penalises it.
func (l *loop) choose(p *part) int {
	if p.logits == 0 {
		return 0
	}
	ids, penalty := p.sampler.Penalised()
	p.best = p.sampler.Best()
	if len(ids)+p.drafted > model.MaxPenalised {
		p.best, ids, penalty = 0, nil, 1
	}
	first := len(l.penalised)
	l.penalised = append(l.penalised, ids...)
	drafted := p.tokens[len(p.tokens) : len(p.tokens)+p.drafted]
	for i := range p.logits {
		if i > 0 && penalty != 1 && !slices.Contains(l.penalised[first:], drafted[i-1]) {
			l.penalised = append(l.penalised, drafted[i-1])
		}
		l.choices = append(l.choices, model.Choice{Seen: l.penalised[first:], Penalty: penalty, Scale: p.sampler.Scale()})
	}
	return p.best
}
