package cpu

import (
	"math"

	"ragd/inference/model"
)

// step describes the rows of the step that is running.
type step struct {
	tokens    []int32
	positions []int32
	types     []int32 // token types, encoders only
	spans     []span
	spanOf    []int32 // the span of each row
	logits    []int32 // rows that want logits
	finer     []int32 // rows that are quantised finer
	count     int     // number of the step, from 1
}

// span is the rows of one piece or text.
type span struct {
	first, rows int // rows of the step
	start       int // position of the first row
	blocks      []int32
}

// resetStep opens a step, which lasts until its results are returned.
func (b *Backend) resetStep() {
	b.seat.begin()
	s := &b.step
	s.tokens, s.positions, s.types = s.tokens[:0], s.positions[:0], s.types[:0]
	s.spans, s.spanOf, s.logits = s.spans[:0], s.spanOf[:0], s.logits[:0]
	s.finer = s.finer[:0]
	s.count++
}

// Begin opens a step over the pieces of batch.
func (b *Backend) Begin(batch model.Batch) {
	b.resetStep()
	s := &b.step
	for i := range batch {
		p := &batch[i]
		s.spans = append(s.spans, span{first: len(s.tokens), rows: len(p.Tokens), start: p.Start, blocks: p.Blocks})
		s.tokens = append(s.tokens, p.Tokens...)
		for j := range p.Tokens {
			s.positions = append(s.positions, int32(p.Start+j))
			s.spanOf = append(s.spanOf, int32(i))
		}
		for j := range p.Logits {
			s.logits = append(s.logits, int32(len(s.tokens)-p.Logits+j))
		}
	}
	b.sizeTensors()
}

// BeginTexts opens a step over whole texts.
func (b *Backend) BeginTexts(texts []model.Text) {
	b.resetStep()
	s := &b.step
	for i := range texts {
		t := &texts[i]
		s.spans = append(s.spans, span{first: len(s.tokens), rows: len(t.Tokens)})
		s.tokens = append(s.tokens, t.Tokens...)
		s.finer = append(s.finer, int32(len(s.tokens)-len(t.Tokens)))
		if len(t.Tokens) > 1 {
			s.finer = append(s.finer, int32(len(s.tokens)-1))
		}
		for j := range t.Tokens {
			s.positions = append(s.positions, int32(j))
			typ := int32(0)
			if t.Second > 0 && j >= t.Second {
				typ = 1
			}
			s.types = append(s.types, typ)
		}
	}
	b.sizeTensors()
}

func (b *Backend) sizeTensors() {
	for _, t := range b.tensors {
		t.resize(len(b.step.tokens), t.width)
	}
}

// rope is rotary positions: the frequencies and, for the rows of one step, the
// cosines and sines.
type rope struct {
	freqs    []float64
	order    model.PairOrder
	cos, sin []float32
	step     int
}

func (r *rope) Dim() int { return 2 * len(r.freqs) }

// NewRope prepares rotary positions.
func (b *Backend) NewRope(frequencies []float64, order model.PairOrder) (model.Rope, error) {
	return &rope{freqs: frequencies, order: order}, nil
}

// fill computes the tables of a step the first time a layer of it asks. Angles are
// float64: at large positions the float32 product of position and frequency is
// off by more than the rotation of the slowest pairs.
func (r *rope) fill(s *step) {
	if r.step == s.count {
		return
	}
	r.step = s.count
	n := len(r.freqs)
	r.cos = grow(r.cos, len(s.positions)*n)
	r.sin = grow(r.sin, len(s.positions)*n)
	for row, pos := range s.positions {
		for i, f := range r.freqs {
			sin, cos := math.Sincos(float64(pos) * f)
			r.cos[row*n+i], r.sin[row*n+i] = float32(cos), float32(sin)
		}
	}
}

// rotate turns the leading dimensions of one head of a row.
func (b *Backend) rotate(r *rope, head []float32, row int) {
	n := len(r.freqs)
	cos, sin := r.cos[row*n:(row+1)*n], r.sin[row*n:(row+1)*n]
	if r.order == model.Interleaved {
		b.set.RopePairs(head[:2*n], cos, sin)
		return
	}
	b.set.RopeHalves(head[:2*n], cos, sin)
}
