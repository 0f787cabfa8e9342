package cpu

import (
	"math"

	"ragd/inference/cpu/kernel"
	"ragd/inference/model"
)

// sectionTokens is the number of positions in a section, a whole number of blocks.
// Sections begin at its multiples whatever the query, so that joining them gives
// the same bits whether one thread attends them or several do.
const sectionTokens = 16 * model.BlockTokens

// partial is the running softmax of some query rows over some positions.
type partial struct {
	acc    []float32
	states []kernel.SoftmaxState
}

// stateLine is how many states fill a cache line. A thread writes the states of its section
// at every block, and those of the next section may be another thread's.
const stateLine = 8

// reset clears room for rows positions of group heads.
func (p *partial) reset(rows, group, dim int) {
	p.acc = grow(p.acc, rows*group*dim)
	p.states = grow(p.states, ceil(rows*group, stateLine)*stateLine)[:rows*group]
	clear(p.acc)
	for i := range p.states {
		p.states[i] = kernel.SoftmaxState{Max: float32(math.Inf(-1))}
	}
}

// join adds the positions of next, which follow those of p.
func (p *partial) join(set *kernel.Set, next *partial) {
	dim := len(p.acc) / len(p.states)
	for i := range p.states {
		a, b := &p.states[i], &next.states[i]
		acc, add := p.acc[i*dim:(i+1)*dim], next.acc[i*dim:(i+1)*dim]
		switch {
		case b.Sum == 0: // sees none of these positions
		case a.Sum == 0:
			*a = *b
			copy(acc, add)
		default:
			top := max(a.Max, b.Max)
			before, after := exp(a.Max-top), exp(b.Max-top)
			set.Scale(acc, before)
			set.Axpy(acc, after, add)
			*a = kernel.SoftmaxState{Max: top, Sum: a.Sum*before + b.Sum*after}
		}
	}
}

// partials holds the result of each item while sections are attended apart.
type partials []partial

// plan chooses what an item is. Sections are items of their own when a tile is too
// much of the whole to keep the threads busy, as in decoding or when a piece deep
// in its prompt runs beside short answers.
func (t *attentionTask) plan() {
	work, largest, single := 0, 0, true
	for i := range t.b.step.spans {
		s := &t.b.step.spans[i]
		from, to := t.sees(s, s.rows-1)
		tile := min(s.rows, t.tall) * (to - from)
		work += ceil(s.rows, t.tall) * tile * t.a.KVHeads
		largest = max(largest, tile)
		single = single && s.rows <= t.tall
	}
	threads := t.b.pool.size
	t.split = single && threads > 1 && work < tilesPerThread*threads*largest
	t.items = 0
	for i := range t.b.step.spans {
		t.items += t.spanItems(&t.b.step.spans[i])
	}
	if more := t.items - len(t.partials); t.split && more > 0 {
		t.partials = append(t.partials, make(partials, more)...)
	}
}

func (t *attentionTask) spanItems(s *span) int {
	if t.split {
		first, last := t.sections(s, 0, s.rows)
		return (last - first) * t.a.KVHeads
	}
	return ceil(s.rows, t.tall) * t.a.KVHeads
}

// sections is the range of sections that the rows [lo,hi) of a span see.
func (t *attentionTask) sections(s *span, lo, hi int) (first, last int) {
	from, _ := t.sees(s, lo)
	_, to := t.sees(s, hi-1)
	return from / sectionTokens, ceil(to, sectionTokens)
}

// part attends all rows of a span to its at-th section, into a slot.
func (t *attentionTask) part(w *workspace, s *span, head, at, slot int) {
	first, _ := t.sections(s, 0, s.rows)
	p := &t.partials[slot]
	t.load(w, s, head, 0, s.rows)
	p.reset(s.rows, t.group, t.a.HeadDim)
	t.section(w, p, s, head, first+at, 0, s.rows)
}

// joinTask joins the sections of each span and head.
type joinTask struct{ t *attentionTask }

func (j *joinTask) do(worker, item int) {
	t := j.t
	index, head := item/t.a.KVHeads, item%t.a.KVHeads
	slot := head
	for i := range index {
		slot += t.spanItems(&t.b.step.spans[i])
	}
	s := &t.b.step.spans[index]
	total := &t.b.workers[worker].total
	total.reset(s.rows, t.group, t.a.HeadDim)
	for n := t.spanItems(s) / t.a.KVHeads; n > 0; n-- {
		total.join(t.b.set, &t.partials[slot])
		slot += t.a.KVHeads
	}
	t.write(total, s, head, 0, s.rows)
}
