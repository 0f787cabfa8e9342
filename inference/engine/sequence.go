package engine

import (
	"fmt"
	"slices"
	"time"

	"ragd/inference/kvcache"
	"ragd/inference/sample"
	"ragd/inference/tokenizer"
)

// sequence is a request on its way. It belongs to the loop once it was admitted.
type sequence struct {
	feed      *Feed
	tenant    string
	prompt    int     // tokens of the prompt
	tokens    []int32 // prompt and answer
	maxTokens int     // of the answer
	ignoreEOS bool
	done      int // tokens whose keys and values are in the cache
	table     *kvcache.Table
	sampler   *sample.Sampler
	detok     *tokenizer.Detokenizer
	sure      Confidence
	times     Times
	ended     bool
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
	return &sequence{
		feed:      NewFeed(nil),
		tenant:    r.Tenant,
		prompt:    len(r.Tokens),
		tokens:    slices.Grow(slices.Clone(r.Tokens), r.MaxTokens),
		maxTokens: r.MaxTokens,
		ignoreEOS: r.IgnoreEOS,
		sampler:   sampler,
		detok:     detok,
		times:     Times{Submitted: time.Now()},
	}, nil
}

// capacity is how many positions the sequence can fill: the last token of the
// longest answer is never run.
func (s *sequence) capacity() int { return s.prompt + s.maxTokens - 1 }

// pending is how many tokens are not in the cache yet.
func (s *sequence) pending() int { return len(s.tokens) - s.done }

// left is how much longer the answer may become.
func (s *sequence) left() int { return s.prompt + s.maxTokens - len(s.tokens) }

func (s *sequence) usage() Usage {
	u := Usage{InputTokens: s.prompt, OutputTokens: len(s.tokens) - s.prompt}
	if s.table != nil {
		u.CachedTokens = s.table.Cached()
	}
	return u
}

// draw takes the next token from its logits and says whether it ended the
// answer, and why.
func (s *sequence) draw(logits []float32, tok tokenizer.Tokenizer, ends []int32) (Reason, error) {
	id, err := s.sampler.Sample(logits)
	if err != nil {
		return "", fmt.Errorf("draw token %d of the answer: %w", len(s.tokens)-s.prompt, err)
	}
	s.sampler.Accept(id)
	s.sure.Add(logProb(logits, id))
	s.tokens = append(s.tokens, id)
	s.times.Last = time.Now()
	if s.times.FirstToken.IsZero() {
		s.times.FirstToken = s.times.Last
	}
	if !s.ignoreEOS && slices.Contains(ends, id) {
		s.feed.Push("", id)
		return ReasonStop, nil
	}
	text, stopped := s.detok.Push(tok.Piece(id))
	s.feed.Push(text, id)
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
