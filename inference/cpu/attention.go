package cpu

import (
	"math"

	"ragd/inference/cpu/kernel"
	"ragd/inference/model"
)

// attentionTask is attention over the spans of a step. An item is a tile of
// queries of one span and one key/value head: the queries of the heads that share
// it, at some consecutive positions. Blocks of keys are visited in the order of
// their positions and keep a running softmax (FlashAttention, arXiv 2205.14135),
// so that a row's result depends on nothing but the row and what it sees.
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
	t.items = 0
	for i := range b.step.spans {
		t.items += t.spanItems(&b.step.spans[i])
	}
	b.pool.run(t, t.items)
}

func (t *attentionTask) spanItems(s *span) int { return ceil(s.rows, t.tall) * t.a.KVHeads }

// do finds the item's span and tile. The last tiles of a causal span see the most
// keys, so they go first.
func (t *attentionTask) do(worker, item int) {
	item = t.items - 1 - item
	for i := range t.b.step.spans {
		s := &t.b.step.spans[i]
		if n := t.spanItems(s); item >= n {
			item -= n
			continue
		}
		first := item / t.a.KVHeads * t.tall
		t.tile(&t.b.workers[worker], s, item%t.a.KVHeads, first, min(first+t.tall, s.rows))
		return
	}
}

// tile computes the rows [lo,hi) of a span for one key/value head.
func (t *attentionTask) tile(w *workspace, s *span, head, lo, hi int) {
	wide := t.group * t.a.HeadDim
	t.load(w, s, head, lo, hi)
	from, to := t.sees(s, lo)
	from -= from % model.BlockTokens
	_, to2 := t.sees(s, hi-1)
	for base := from; base < max(to, to2); base += model.BlockTokens {
		t.block(w, s, head, base, lo, hi)
	}
	for r := lo; r < hi; r++ {
		out := t.dst.row(s.first + r)[head*wide : (head+1)*wide]
		copy(out, w.acc[(r-lo)*wide:])
		for g := range t.group {
			t.b.set.Scale(out[g*t.a.HeadDim:(g+1)*t.a.HeadDim], 1/w.states[(r-lo)*t.group+g].Sum)
		}
	}
}

// load copies the tile's queries next to each other and clears its state.
func (t *attentionTask) load(w *workspace, s *span, head, lo, hi int) {
	wide := t.group * t.a.HeadDim
	w.query = grow(w.query, (hi-lo)*wide)
	w.acc = grow(w.acc, (hi-lo)*wide)
	w.states = grow(w.states, (hi-lo)*t.group)
	for r := lo; r < hi; r++ {
		copy(w.query[(r-lo)*wide:], t.q.row(s.first + r)[head*wide:(head+1)*wide])
	}
	clear(w.acc)
	for i := range w.states {
		w.states[i] = kernel.SoftmaxState{Max: float32(math.Inf(-1))}
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
func (t *attentionTask) block(w *workspace, s *span, head, base, lo, hi int) {
	at := t.offset(s, head, base)
	for r := lo; r < hi; {
		from, to := t.part(s, r, base)
		next := r + 1
		for next < hi {
			if f, e := t.part(s, next, base); f != from || e != to {
				break
			}
			next++
		}
		if from < to {
			t.step(w, r-lo, next-lo, at+(from-base)*t.kv.stride, to-from)
		}
		r = next
	}
}

// part is what row r sees of the block at base.
func (t *attentionTask) part(s *span, r, base int) (from, to int) {
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

// step runs the kernel for rows [lo,hi) of the tile over n cached rows.
func (t *attentionTask) step(w *workspace, lo, hi, at, n int) {
	lo, hi = lo*t.group, hi*t.group
	dim := t.a.HeadDim
	st, acc, q := w.states[lo:hi], w.acc[lo*dim:hi*dim], w.query[lo*dim:hi*dim]
	switch {
	case t.a.SoftCap > 0:
		t.capped(w, st, acc, q, at, n)
	case t.b.float32:
		t.b.set.AttendTileF32(st, acc, q, t.kv.k32[at:], t.kv.v32[at:], n, t.kv.stride, t.a.Scale)
	default:
		t.b.set.AttendTile(st, acc, q, t.kv.k16[at:], t.kv.v16[at:], n, t.kv.stride, t.a.Scale)
	}
}

// capped is the step with soft-capped scores, one row at a time: the kernels have
// no cap, and no shipped model uses one.
func (t *attentionTask) capped(_ *workspace, st []kernel.SoftmaxState, acc, q []float32, at, n int) {
	dim := t.a.HeadDim
	for i := range st {
		row, sum := q[i*dim:(i+1)*dim], acc[i*dim:(i+1)*dim]
		for j := range n {
			o := at + j*t.kv.stride
			s := t.a.SoftCap * tanh(t.a.Scale*t.dotKey(row, o)/t.a.SoftCap)
			p := advance(t.b.set, &st[i], sum, s)
			t.addValue(sum, p, o)
		}
	}
}

// advance puts one score into the running softmax and returns its weight.
func advance(set *kernel.Set, st *kernel.SoftmaxState, acc []float32, s float32) float32 {
	if s > st.Max {
		shrink := exp(st.Max - s)
		set.Scale(acc, shrink)
		st.Sum *= shrink
		st.Max = s
	}
	p := exp(s - st.Max)
	st.Sum += p
	return p
}

func (t *attentionTask) dotKey(q []float32, at int) float32 {
	if t.b.float32 {
		return t.b.set.Dot(q, t.kv.k32[at:at+len(q)])
	}
	return t.b.set.DotF16(q, t.kv.k16[at:at+len(q)])
}

func (t *attentionTask) addValue(acc []float32, p float32, at int) {
	if t.b.float32 {
		t.b.set.Axpy(acc, p, t.kv.v32[at:at+len(acc)])
		return
	}
	t.b.set.AxpyF16(acc, p, t.kv.v16[at:at+len(acc)])
}

func exp(x float32) float32  { return float32(math.Exp(float64(x))) }
func tanh(x float32) float32 { return float32(math.Tanh(float64(x))) }
