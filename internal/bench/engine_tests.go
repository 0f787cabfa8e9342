package bench

import (
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"ragd/inference/engine"
)

// speed is tokens a second of a shape: a prompt from the start of its first piece
// to its first token, or tokens after the first.
func (b *engineBench) speed(ctx context.Context, s shape) (float64, error) {
	// A depth is prefilled once and found in the cache by later runs. Prompts that
	// are measured are new each time.
	depth := fixed(s.depth, b.model.Vocab)
	r := engine.Request{Tokens: depth, MaxTokens: 1, IgnoreEOS: true, NoLookup: true, Tenant: "depth"}
	if s.depth > 0 {
		if _, err := b.answer(ctx, r); err != nil {
			return 0, err
		}
	}
	if s.prompt > 0 {
		r.Tokens = slices.Concat(depth, b.random(s.prompt))
		a, err := b.answer(ctx, r)
		return float64(len(r.Tokens)-a.cached) / a.times.Prefill().Seconds(), err
	}
	if s.depth == 0 {
		r.Tokens = b.random(1)
	}
	r.MaxTokens = s.generate + 1
	a, err := b.answer(ctx, r)
	return float64(s.generate) / a.times.Decode().Seconds(), err
}

// self returns the function for a test of ragd against itself, or by itself. It
// gives a value, and a ratio where there is something to compare with.
func (b *engineBench) self(name string) func(context.Context) (value, ratio float64, err error) {
	switch name {
	case "warm_prefix":
		return b.warmPrefix
	case "gap":
		return b.gap
	case "no_kv_cache":
		return b.noKVCache
	case "lookup":
		return b.quoting
	case "lookup_free":
		return b.quotingFreely
	}
	n, _ := parseStreams(name)
	return func(ctx context.Context) (float64, float64, error) { return b.streams(ctx, n) }
}

const (
	streamPrompt, streamAnswer = 128, 64
	prefixTokens, tailTokens   = 1000, 24
	recomputePrompt            = 128
	recomputeAnswer            = 8
)

// streams lets n answers run side by side and is their tokens a second together.
// Their prompts are in the cache, so that it is decoding that is measured.
func (b *engineBench) streams(ctx context.Context, n int) (float64, float64, error) {
	requests := make([]engine.Request, n)
	for i := range requests {
		requests[i] = engine.Request{Tokens: b.random(streamPrompt), MaxTokens: 1, IgnoreEOS: true, NoLookup: true, Tenant: "streams"}
		if _, err := b.answer(ctx, requests[i]); err != nil {
			return 0, 0, err
		}
		requests[i].MaxTokens = streamAnswer
	}
	began := time.Now()
	running := make([]*engine.Stream, n)
	for i, r := range requests {
		var err error
		if running[i], err = b.engine.Submit(ctx, r); err != nil {
			return 0, 0, err
		}
		defer running[i].Close()
	}
	for _, s := range running {
		if _, err := read(ctx, s); err != nil {
			return 0, 0, err
		}
	}
	return float64(n*streamAnswer) / time.Since(began).Seconds(), 0, nil
}

// warmPrefix is the time to the first token, in milliseconds, of a prompt whose
// first 1,000 tokens are in the cache, over that of one whose are not.
func (b *engineBench) warmPrefix(ctx context.Context) (float64, float64, error) {
	prefix := b.random(prefixTokens)
	var took [2]time.Duration
	for i := range took {
		a, err := b.answer(ctx, engine.Request{Tokens: slices.Concat(prefix, b.random(tailTokens)), MaxTokens: 1, Tenant: "prefix"})
		if err != nil {
			return 0, 0, err
		}
		took[i] = a.times.FirstToken.Sub(a.times.Submitted)
	}
	return took[1].Seconds() * 1e3, took[1].Seconds() / took[0].Seconds(), nil
}

// noKVCache is decoding that runs the whole sequence again for every token, over
// decoding with the cache.
func (b *engineBench) noKVCache(ctx context.Context) (float64, float64, error) {
	cfg := b.cfg
	cfg.Engine.NoKVCache = true
	without, err := openEngine(ctx, cfg)
	if err != nil {
		return 0, 0, err
	}
	var speed [2]float64
	for i, e := range []*engineBench{without, b} {
		var a answer
		if a, err = e.answer(ctx, engine.Request{Tokens: b.random(recomputePrompt), MaxTokens: recomputeAnswer + 1, IgnoreEOS: true, NoLookup: true}); err != nil {
			break
		}
		speed[i] = recomputeAnswer / a.times.Decode().Seconds()
	}
	return speed[0], speed[0] / speed[1], errors.Join(err, without.close())
}

// answer is what came of a request.
type answer struct {
	tokens []int32
	cached int
	times  engine.Times

	drafted, accepted int
}

func (b *engineBench) answer(ctx context.Context, r engine.Request) (answer, error) {
	s, err := b.engine.Submit(ctx, r)
	if err != nil {
		return answer{}, err
	}
	defer s.Close()
	return read(ctx, s)
}

func read(ctx context.Context, s *engine.Stream) (a answer, err error) {
	for {
		event, err := s.Next(context.WithoutCancel(ctx))
		switch {
		case errors.Is(err, io.EOF):
			return a, context.Cause(ctx)
		case err != nil:
			return a, err
		}
		switch e := event.(type) {
		case engine.Delta:
			a.tokens = append(a.tokens, e.Tokens...)
		case engine.Done:
			a.times, a.cached = e.Times, e.Usage.CachedTokens
			a.drafted, a.accepted = e.Usage.DraftedTokens, e.Usage.AcceptedTokens
		case engine.Failed:
			return a, e.Err
		}
	}
}

// random is n tokens that no run had before.
func (b *engineBench) random(n int) []int32 {
	b.run++
	return draw(uint64(b.run), n, b.model.Vocab)
}

// fixed is n tokens, the same each time.
func fixed(n, vocab int) []int32 { return draw(0, n, vocab) }

func draw(seed uint64, n, vocab int) []int32 {
	from := rand.New(rand.NewPCG(seed, 1))
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = from.Int32N(int32(vocab))
	}
	return tokens
}
