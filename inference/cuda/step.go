//go:build cuda && cgo

package cuda

import (
	"math"

	"ragd/inference/cuda/cudrv"
	"ragd/inference/model"
)

// step describes the rows of the step that is running, here and on the device.
type step struct {
	rows      int
	tokens    []int32
	types     []int32 // token types, encoders only
	positions []int32
	slots     []int32 // where each row's key and value go: block · BlockTokens + place
	ends      []int32 // the position after the last one that each row sees
	tables    []int32 // block tables, one after the other
	spans     []int32 // {first row, rows, position of the first row, offset in tables}
	logits    []int32 // rows that want logits
	finer     []int32 // rows that are quantised finer
	longest   int     // the largest of ends
	causal    bool
	count     int // number of the step, from 1

	dev   struct{ tokens, types, positions, slots, ends, tables, spans cudrv.Ptr }
	tiles map[groups]tiling
}

// open forgets the step before.
func (b *Backend) openStep(causal bool) *step {
	b.err = nil
	b.plan.reset()
	b.staging.reset()
	b.incoming.bytes = 0
	s := &b.step
	s.tokens, s.types, s.positions, s.slots, s.ends = s.tokens[:0], s.types[:0], s.positions[:0], s.slots[:0], s.ends[:0]
	s.tables, s.spans, s.logits, s.finer = s.tables[:0], s.spans[:0], s.logits[:0], s.finer[:0]
	s.longest, s.causal = 0, causal
	s.count++
	s.tiles = make(map[groups]tiling, 1)
	return s
}

// add puts rows at positions start and following into the step as one span.
func (s *step) add(tokens []int32, start int, blocks []int32) {
	s.spans = append(s.spans, int32(len(s.tokens)), int32(len(tokens)), int32(start), int32(len(s.tables)))
	s.tables = append(s.tables, blocks...)
	s.tokens = append(s.tokens, tokens...)
	for i := range tokens {
		p := start + i
		s.positions = append(s.positions, int32(p))
		s.slots = append(s.slots, blocks[p/model.BlockTokens]*model.BlockTokens+int32(p%model.BlockTokens))
		end := len(tokens)
		if s.causal {
			end = p + 1
		}
		s.ends = append(s.ends, int32(end))
		s.longest = max(s.longest, end)
	}
}

// Begin opens a step over the pieces of batch.
func (b *Backend) Begin(batch model.Batch) {
	s := b.openStep(true)
	for i := range batch {
		p := &batch[i]
		s.add(p.Tokens, p.Start, p.Blocks)
		for j := range p.Logits {
			s.logits = append(s.logits, int32(len(s.tokens)-p.Logits+j))
		}
	}
	b.seal()
}

// BeginTexts opens a step over whole texts. Each gets blocks of its own in a cache
// that lives for one layer.
func (b *Backend) BeginTexts(texts []model.Text) {
	s := b.openStep(false)
	next := int32(0)
	for i := range texts {
		t := &texts[i]
		var blocks []int32
		for range ceil(len(t.Tokens), model.BlockTokens) {
			blocks = append(blocks, next)
			next++
		}
		first := int32(len(s.tokens))
		s.add(t.Tokens, 0, blocks)
		if s.finer = append(s.finer, first); len(t.Tokens) > 1 {
			s.finer = append(s.finer, int32(len(s.tokens)-1))
		}
		for j := range t.Tokens {
			typ := int32(0)
			if t.Second > 0 && j >= t.Second {
				typ = 1
			}
			s.types = append(s.types, typ)
		}
	}
	b.seal()
}

// seal stages the step's tables and sizes its tensors.
func (b *Backend) seal() {
	s := &b.step
	s.rows = len(s.tokens)
	s.dev.tokens, s.dev.positions = stage(b, s.tokens), stage(b, s.positions)
	s.dev.slots, s.dev.ends = stage(b, s.slots), stage(b, s.ends)
	s.dev.spans, s.dev.tables = stage(b, s.spans), stage(b, roomy(s.tables))
	for _, t := range b.tensors {
		b.resize(t, s.rows, t.width)
	}
}

// roomy pads a table to a length that it keeps while sequences grow: what is staged
// after it stays in its place, and the step the same (see replay).
func roomy(table []int32) []int32 {
	const least = 256
	n := least
	for n < len(table) {
		n *= 2
	}
	return append(table, make([]int32, n-len(table))...)
}

// rope is rotary positions: the frequencies and, for the rows of one step, the
// cosines and sines.
type rope struct {
	freqs    []float64
	order    model.PairOrder
	step     int // that cos and sin were staged for
	cos, sin cudrv.Ptr
	c, s     []float32
}

func (r *rope) Dim() int { return 2 * len(r.freqs) }

// NewRope prepares rotary positions.
func (b *Backend) NewRope(frequencies []float64, order model.PairOrder) (model.Rope, error) {
	return &rope{freqs: frequencies, order: order}, nil
}

// fill stages the tables of a step the first time a layer of it asks. Angles are
// float64, as on the host: at large positions the float32 product of position and
// frequency is off by more than the rotation of the slowest pairs.
func (b *Backend) fill(r *rope) {
	if r.step == b.step.count {
		return
	}
	r.step = b.step.count
	r.c, r.s = r.c[:0], r.s[:0]
	for _, pos := range b.step.positions {
		for _, f := range r.freqs {
			sin, cos := math.Sincos(float64(pos) * f)
			r.c, r.s = append(r.c, float32(cos)), append(r.s, float32(sin))
		}
	}
	r.cos, r.sin = stage(b, r.c), stage(b, r.s)
}

func ceil(n, d int) int { return (n + d - 1) / d }
