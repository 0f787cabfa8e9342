package cpu

import (
	"ragd/inference/cpu/kernel"
	"ragd/inference/model"
)

// attentionTask is attention over the spans of a step. An item is a tile of
// queries of one span and one key/value head: the queries of the heads that share
// it, at some consecutive positions. Blocks of keys are visited in the order of
// their positions and keep a running softmax (FlashAttention, arXiv 2205.14135),
// in sections that end at fixed positions and are then joined in order: a row's
// result depends on nothing but the row and what it sees, and when queries are
// few, threads take a section each (see sections.go).
type attentionTask struct {
	b      *Backend
	dst, q *tensor
	a      model.Attention
	group  int // query heads to a key/value head
	tall   int // positions in a tile
	kv     *kv
	items  int

	// Causal attention reads a paged cache; packed texts read their own rows.
	cache *cache
	layer int

	split    bool // an item is one section of a tile
	partials partials
	join     joinTask
}

// attendRows is about how many query rows a tile has: queries, accumulators and
// a block of keys and values then lie in the first-level cache.
const attendRows = 48

// Attend sets dst to causal attention of q over the cache.
func (b *Backend) Attend(dst, q model.Tensor, c model.Cache, layer int, a model.Attention) {
	t := &b.attention
	t.cache, t.layer, t.kv = c.(*cache), layer, &c.(*cache).kv
	b.attend(dst.(*tensor), q.(*tensor), a)
}

func (b *Backend) attend(dst, q *tensor, a model.Attention) {
	t := &b.attention
	t.dst, t.q, t.a = dst, q, a
	t.group = a.Heads / a.KVHeads
	t.tall = max(1, attendRows/t.group)
	t.plan()
	b.run(t, t.items)
	if t.split {
		t.join.t = t
		b.run(&t.join, len(b.step.spans)*a.KVHeads)
	}
}

// do finds the item's span, tile and section. The last tiles of a causal span see
// the most keys, so they go first. Sections go head by head: keys that follow those a
// thread had before are fetched sooner.
func (t *attentionTask) do(worker, item int) {
	if heads := t.a.KVHeads; t.split {
		of := t.items / heads
		item = item%of*heads + item/of
	} else {
		item = t.items - 1 - item
	}
	w, slot := &t.b.workers[worker], item
	for i := range t.b.step.spans {
		s := &t.b.step.spans[i]
		if n := t.spanItems(s); item >= n {
			item -= n
			continue
		}
		head, at := item%t.a.KVHeads, item/t.a.KVHeads
		if t.split {
			t.part(w, s, head, at, slot)
			return
		}
		lo := at * t.tall
		t.tile(w, s, head, lo, min(lo+t.tall, s.rows))
		return
	}
}

// tile computes the rows [lo,hi) of a span for one key/value head.
func (t *attentionTask) tile(w *workspace, s *span, head, lo, hi int) {
	t.load(w, s, head, lo, hi)
	w.total.reset(hi-lo, t.group, t.a.HeadDim)
	first, last := t.sections(s, lo, hi)
	for section := first; section < last; section++ {
		w.part.reset(hi-lo, t.group, t.a.HeadDim)
		t.section(w, &w.part, s, head, section, lo, hi)
		w.total.join(t.b.set, &w.part)
	}
	t.write(&w.total, s, head, lo, hi)
}

// load copies the tile's queries next to each other.
func (t *attentionTask) load(w *workspace, s *span, head, lo, hi int) {
	wide := t.group * t.a.HeadDim
	w.query = grow(w.query, (hi-lo)*wide)
	for r := lo; r < hi; r++ {
		copy(w.query[(r-lo)*wide:], t.q.row(s.first + r)[head*wide:(head+1)*wide])
	}
}

// write divides by the sums and stores the tile's rows.
func (t *attentionTask) write(p *partial, s *span, head, lo, hi int) {
	dim := t.a.HeadDim
	wide := t.group * dim
	for r := lo; r < hi; r++ {
		out := t.dst.row(s.first + r)[head*wide : (head+1)*wide]
		copy(out, p.acc[(r-lo)*wide:])
		for g := range t.group {
			t.b.set.Scale(out[g*dim:(g+1)*dim], 1/p.states[(r-lo)*t.group+g].Sum)
		}
	}
}

// section attends the rows [lo,hi) to one section of the positions: blocks of which
// all rows see the same as one list, others each by itself.
func (t *attentionTask) section(w *workspace, p *partial, s *span, head, section, lo, hi int) {
	from, _ := t.sees(s, lo)
	_, to := t.sees(s, hi-1)
	from = max(from-from%model.BlockTokens, section*sectionTokens)
	w.runs = w.runs[:0]
	for base := from; base < min(to, (section+1)*sectionTokens); base += model.BlockTokens {
		lower, upper := t.seesOf(s, lo, base)
		if f, e := t.seesOf(s, hi-1, base); f == lower && e == upper && t.kv.k8 == nil {
			at := t.offset(s, head, base) + (lower-base)*t.kv.stride
			w.runs = append(w.runs, kernel.Run{At: at, N: upper - lower})
			continue
		}
		t.flush(w, p, lo, hi)
		if ahead := base + fetchTokens; t.kv.k8 != nil && ahead < to {
			t.kv.fetch(t.b.set, t.offset(s, head, ahead), model.BlockTokens*t.a.HeadDim)
		}
		t.block(w, p, s, head, base, lo, hi)
	}
	t.flush(w, p, lo, hi)
}

// fetchTokens is how far ahead of the q8_0 block that is widened another is fetched into
// the cache: about as long as memory takes to answer.
const fetchTokens = 2 * model.BlockTokens

// flush attends the rows [lo,hi) to the runs collected.
func (t *attentionTask) flush(w *workspace, p *partial, lo, hi int) {
	if len(w.runs) > 0 {
		t.step(w, p, t.kv, 0, hi-lo, w.runs)
		w.runs = w.runs[:0]
	}
}

// sees is the range of positions that row r of a span attends to.
func (t *attentionTask) sees(s *span, r int) (from, to int) {
	if t.cache == nil {
		return 0, s.rows
	}
	pos := s.start + r
	if t.a.Window > 0 {
		from = max(0, pos-t.a.Window+1)
	}
	return from, pos + 1
}

// block attends the rows [lo,hi) to the block at position base, rows that see the
// same part of it together.
func (t *attentionTask) block(w *workspace, p *partial, s *span, head, base, lo, hi int) {
	m, at := t.kv, t.offset(s, head, base)
	if m.k8 != nil {
		t.widen(w, s, at, base, lo, hi)
		m, at = &w.wide, 0
	}
	for r := lo; r < hi; {
		from, to := t.seesOf(s, r, base)
		next := r + 1
		for next < hi {
			if f, e := t.seesOf(s, next, base); f != from || e != to {
				break
			}
			next++
		}
		if from < to {
			w.runs = append(w.runs[:0], kernel.Run{At: at + (from-base)*m.stride, N: to - from})
			t.step(w, p, m, r-lo, next-lo, w.runs)
			w.runs = w.runs[:0]
		}
		r = next
	}
}

// widen puts what rows [lo,hi) see of the q8_0 block at an offset into the thread's
// scratch, which stays in the first-level cache: once for all rows of the tile, all heads
// of a group among them, and exactly, so that nothing depends on who shares it.
func (t *attentionTask) widen(w *workspace, s *span, at, base, lo, hi int) {
	from, _ := t.seesOf(s, lo, base)
	if _, to := t.seesOf(s, hi-1, base); from < to {
		w.wide.widen(t.b.set, t.kv, at, from-base, to-base)
	}
}

// seesOf is what row r sees of the block at base.
func (t *attentionTask) seesOf(s *span, r, base int) (from, to int) {
	from, to = t.sees(s, r)
	return max(from, base), min(to, base+model.BlockTokens)
}

// offset is where the block at position base begins in the keys and values.
func (t *attentionTask) offset(s *span, head, base int) int {
	if t.cache == nil {
		return (s.first+base)*t.kv.stride + head*t.a.HeadDim
	}
	return t.cache.offset(t.layer, s.blocks[base/model.BlockTokens], head)
}

// step runs the kernel for rows [lo,hi) of the tile over runs of m.
func (t *attentionTask) step(w *workspace, p *partial, m *kv, lo, hi int, runs []kernel.Run) {
	lo, hi = lo*t.group, hi*t.group
	dim := t.a.HeadDim
	st, acc, q := p.states[lo:hi], p.acc[lo*dim:hi*dim], w.query[lo*dim:hi*dim]
	switch {
	case t.a.SoftCap > 0:
		for _, run := range runs {
			t.capped(st, acc, q, m, run)
		}
	case m.k32 != nil:
		t.b.set.AttendTileF32(st, acc, q, m.k32, m.v32, runs, m.stride, t.a.Scale)
	default:
		t.b.set.AttendTile(st, acc, q, m.k16, m.v16, runs, m.stride, t.a.Scale)
	}
}
