package sample

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
)

// ErrNoToken is returned when every token is ruled out.
var ErrNoToken = errors.New("no token can be sampled: every logit is -Inf")

// ErrNotFinite is returned for logits with NaN or +Inf, the mark of a broken
// model or kernel.
var ErrNotFinite = errors.New("logits hold NaN or +Inf")

// Candidate is a token that may be drawn, with its probability.
type Candidate struct {
	ID int32
	P  float64
}

// Sampler chooses the tokens of one request. It is not safe for concurrent use.
type Sampler struct {
	p     Params
	vocab int
	rng   *rand.Rand
	next  float64 // of the generator, not used yet; or none

	seen  []int32  // accepted tokens, each once
	known []uint64 // bit set of seen
	row   []float32
	items []item
	out   []Candidate
}

// New returns a sampler for a vocabulary of vocab tokens.
func New(p Params, vocab int) (*Sampler, error) {
	if err := p.Validate(); err != nil {
		return nil, err
	}
	if vocab < 1 || vocab > math.MaxInt32 {
		return nil, fmt.Errorf("sampling over a vocabulary of %d tokens", vocab)
	}
	// The second word only has to be fixed: it picks the PCG's stream.
	const stream = 0x9e3779b97f4a7c15
	return &Sampler{p: p, vocab: vocab, rng: rand.New(rand.NewPCG(p.Seed, stream)), next: none}, nil
}

// Accept tells the sampler that id was drawn and is part of the answer.
func (s *Sampler) Accept(id int32) {
	if s.p.Grammar != nil {
		s.p.Grammar.Accept(id)
	}
	s.Observe(id)
}

// Observe counts id for the penalties without being part of the answer: call
// it for the tokens of the prompt, if those are to be penalised.
func (s *Sampler) Observe(id int32) {
	if !s.penalises() || id < 0 || int(id) >= s.vocab {
		return
	}
	if s.known == nil {
		s.known = make([]uint64, (s.vocab+63)/64)
	}
	if bit := uint64(1) << (id % 64); s.known[id/64]&bit == 0 {
		s.known[id/64] |= bit
		s.seen = append(s.seen, id)
	}
}

// Sample draws the next token from a row of vocab logits, which it leaves as
// they are. It fails with ErrNoToken or ErrNotFinite; it does not Accept.
func (s *Sampler) Sample(logits []float32) (int32, error) {
	items, err := s.choices(logits)
	if err != nil {
		return 0, err
	}
	return s.draw(items), nil
}

// draw takes one number of the generator, unless there is nothing to choose.
func (s *Sampler) draw(items []item) int32 {
	if len(items) == 1 {
		return items[0].id
	}
	at := pick(items, s.number()*sum(items))
	s.next = none
	if at == len(items) {
		// Rounding has left the sum a little under the number: the last one has it.
		for at--; items[at].weight == 0; at-- {
		}
	}
	return items[at].id
}

// pick is the place of the item in whose share of the weights goal lies, one after the
// other; the number of items where it lies behind them.
func pick(items []item, goal float64) int {
	for i := range items {
		if goal -= items[i].weight; goal < 0 {
			return i
		}
	}
	return len(items)
}

// none stands for a number that was not taken from the generator yet.
const none = -1

// number is the generator's next number, in [0, 1), until it is used.
func (s *Sampler) number() float64 {
	if s.next == none {
		s.next = s.rng.Float64()
	}
	return s.next
}

// Distribution is what Sample draws from: the tokens left after every filter,
// with probabilities that sum to 1. A greedy sampler gives one token. The
// slice is valid until the next call.
func (s *Sampler) Distribution(logits []float32) ([]Candidate, error) {
	items, err := s.choices(logits)
	if err != nil {
		return nil, err
	}
	s.out = s.out[:0]
	total := sum(items)
	for _, it := range items {
		s.out = append(s.out, Candidate{it.id, it.weight / total})
	}
	return s.out, nil
}

// choices are the tokens left after every filter, in the order in which they are drawn
// from: most probable first, at least the MaxBest most probable ones.
func (s *Sampler) choices(logits []float32) ([]item, error) {
	if len(logits) != s.vocab {
		return nil, fmt.Errorf("sampling from %d logits, the vocabulary has %d", len(logits), s.vocab)
	}
	row := s.adjust(logits)
	best, err := argmax(row)
	if err != nil {
		return nil, err
	}
	if s.greedy() {
		s.items = append(s.items[:0], item{best, row[best], 1})
		return s.items, nil
	}
	items := s.minP(s.topP(s.weigh(row, row[best])))
	if s.p.TopK == 0 && !s.cutsNucleus() {
		lead(items)
	}
	return items, nil
}

func (s *Sampler) greedy() bool { return s.p.Temperature < greedyBelow || s.p.TopK == 1 }

func (s *Sampler) penalises() bool {
	return s.p.RepetitionPenalty != 0 && s.p.RepetitionPenalty != 1
}

// adjust applies grammar and penalties to a copy of the row, if there are any.
func (s *Sampler) adjust(logits []float32) []float32 {
	if s.p.Grammar == nil && len(s.seen) == 0 {
		return logits
	}
	s.row = append(s.row[:0], logits...)
	if s.p.Grammar != nil {
		s.p.Grammar.Mask(s.row)
	}
	for _, id := range s.seen {
		if v := s.row[id]; v > 0 {
			s.row[id] = v / s.p.RepetitionPenalty
		} else {
			s.row[id] = v * s.p.RepetitionPenalty
		}
	}
	return s.row
}

// argmax is the lowest id with the largest logit.
func argmax(row []float32) (int32, error) {
	best, top := int32(-1), float32(math.Inf(-1))
	for i, v := range row {
		if v > top {
			best, top = int32(i), v
		}
		if v != v {
			return 0, ErrNotFinite
		}
	}
	switch {
	case top > math.MaxFloat32:
		return 0, ErrNotFinite
	case best < 0:
		return 0, ErrNoToken
	}
	return best, nil
}
