package engine

import (
	"fmt"
	"slices"
	"time"

	"ragd/inference/kvcache"
	"ragd/inference/sample"
	"ragd/inference/tokenizer"
)

// sequence is a request on its way. It belongs to the loop while it runs; while it
// waits, Engine.mu guards it.
type sequence struct {
	feed      *Feed
	tenant    string
	prompt    int       // tokens of the prompt
	tokens    []int32   // prompt and answer
	maxTokens int       // of the answer
	by        time.Time // of the first token, where it was promised
	ignoreEOS bool
	done      int // tokens whose keys and values are in the cache
	target    int // tokens that it has to read before it draws its next one
	lookup    *lookup
	drafted   int
	accepted  int
	table     *kvcache.Table
	sampler   *sample.Sampler
	detok     *tokenizer.Detokenizer
	text      []byte // scratch: what a token added
	confident bool   // whether sure is kept
	sure      Confidence
	times     Times
	prefill   time.Duration // share of the decoder's time
	decode    time.Duration
	ended     bool

	started     int       // the place in the order of first starts, from 1; 0 before
	cached      int       // tokens of the prompt found in the cache then
	reached     int       // tokens that were in the cache when it was preempted
	awaySince   time.Time // when it was preempted; zero while it is not
	preemptions int
	recomputed  int // rows that were run again
}

func (e *Engine) newSequence(r *Request) (*sequence, error) {
	sampler, err := sample.New(r.Sampling, e.vocab)
	if err != nil {
		return nil, fmt.Errorf("%w: sampling: %w", ErrInvalid, err)
	}
	detok, err := tokenizer.NewDetokenizer(r.Stop)
	if err != nil {
		return nil, fmt.Errorf("%w: stop: %w", ErrInvalid, err)
	}
	s := &sequence{
		tenant:    r.Tenant,
		prompt:    len(r.Tokens),
		tokens:    slices.Grow(slices.Clone(r.Tokens), r.MaxTokens),
		maxTokens: r.MaxTokens,
		by:        r.FirstTokenBy,
		ignoreEOS: r.IgnoreEOS,
		confident: r.Confidence,
		sampler:   sampler,
		detok:     detok,
		times:     Times{Submitted: time.Now()},
	}
	s.feed = NewFeed(func() { e.leave(s) })
	if e.lookup && !r.NoLookup {
		l := newLookup()
		s.lookup = &l
	}
	return s, nil
}

// capacity is how many positions the sequence can fill: the last token of the
// longest answer is never run.
func (s *sequence) capacity() int { return s.prompt + s.maxTokens - 1 }

// pending is how many tokens are not in the cache yet.
func (s *sequence) pending() int { return len(s.tokens) - s.done }

// overrun is how long after its time a prompt is still read in a hurry: one that is
// late by little is not to become late by much, and one that asked for what cannot be
// is not to hold the others up for long.
const overrun = 250 * time.Millisecond

// due is when the first token is to be there; zero when at no time, or too long ago, or
// when it was drawn.
func (s *sequence) due(now time.Time) time.Time {
	if now.Sub(s.by) > overrun || !s.times.FirstToken.IsZero() {
		return time.Time{}
	}
	return s.by
}

// unread is how many tokens it has to read before it draws its next one.
func (s *sequence) unread() int { return max(0, s.target-s.done) }

// drawn is how long the answer is.
func (s *sequence) drawn() int { return len(s.tokens) - s.prompt }

// grows reports whether the sequence may come to need more than the given positions.
func (s *sequence) grows(positions int) bool { return positions < s.capacity() }

// left is how much longer the answer may become.
func (s *sequence) left() int { return s.prompt + s.maxTokens - len(s.tokens) }

func (s *sequence) usage() Usage {
	return Usage{
		InputTokens: s.prompt, OutputTokens: s.drawn(), CachedTokens: s.cached,
		DraftedTokens: s.drafted, AcceptedTokens: s.accepted,
		Preemptions: s.preemptions, RecomputedTokens: s.recomputed,
		PrefillTime: s.prefill, DecodeTime: s.decode,
	}
}

// draft is the tokens with at most most guessed ones behind them, as far as there are
// blocks. They lie in the room that newSequence made for the answer and are overwritten
// as it grows.
func (s *sequence) draft(most int) []int32 {
	// The token after the last drafted one must fit into the answer, too.
	most = min(most, s.left()-1, s.table.Capacity()-len(s.tokens))
	if s.lookup == nil || most < 1 {
		return s.tokens
	}
	return s.lookup.extend(s.tokens, most)
}

// verify draws a token from each row of logits, the first of them after the
// sequence as it is, each other one after another drafted token. It ends with the
// first token that is not the drafted one, since later rows were computed for a
// text that is not to be. It says how many drafted tokens were accepted, and
// whether the answer ended and why.
func (s *sequence) verify(rows []row, tok tokenizer.Tokenizer, ends []int32) (accepted int, reason Reason, err error) {
	drafted := s.tokens[len(s.tokens) : len(s.tokens)+len(rows)-1]
	for i := range rows {
		guess := int32(-1)
		if i < len(drafted) {
			guess = drafted[i] // before draw puts its token there
		}
		reason, err = s.draw(&rows[i], tok, ends)
		if err != nil || reason != "" || s.tokens[len(s.tokens)-1] != guess {
			accepted = i
			break
		}
	}
	if len(drafted) > 0 {
		s.drafted += len(drafted)
		s.accepted += accepted
		s.lookup.learn(len(drafted), accepted)
	}
	return accepted, reason, err
}

// draw takes the next token from its row and says whether it ended the
// answer, and why.
func (s *sequence) draw(r *row, tok tokenizer.Tokenizer, ends []int32) (Reason, error) {
	id, err := r.sample(s.sampler)
	if err != nil {
		return "", fmt.Errorf("draw token %d of the answer: %w", s.drawn(), err)
	}
	s.sampler.Accept(id)
	if s.confident {
		s.sure.Add(r.logProb(id))
	}
	s.tokens = append(s.tokens, id)
	s.times.Last = time.Now()
	if s.times.FirstToken.IsZero() {
		s.times.FirstToken = s.times.Last
	}
	if !s.ignoreEOS && slices.Contains(ends, id) {
		s.feed.Push("", id)
		return ReasonStop, nil
	}
	var stopped bool
	s.text, stopped = s.detok.Append(s.text[:0], tok.Piece(id))
	s.feed.PushBytes(s.text, id)
	switch {
	case stopped:
		return ReasonStopString, nil
	case s.left() == 0:
		return ReasonLength, nil
	}
	return "", nil
}

// outcome is the last event of an answer that ended for a reason.
func (s *sequence) outcome(reason Reason) Done {
	return Done{Reason: reason, Usage: s.usage(), Times: s.times, Confidence: s.sure}
}

// failure is the last event of an answer that ended in an error.
func (s *sequence) failure(err error) Failed {
	return Failed{Err: err, Usage: s.usage(), Times: s.times}
}
