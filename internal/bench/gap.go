package bench

import (
	"context"
	"fmt"
	"slices"
	"time"

	"ragd/inference/engine"
)

const (
	longPrompt = 4000
	// longAnswer outlasts the prompt: a step takes at least one of its tokens.
	longAnswer = longPrompt + 2*plainGaps + 16
	// plainGaps is how many gaps of an answer are taken before the prompt comes, and
	// after it.
	plainGaps = 64
)

// gap is the 99th percentile, in milliseconds, of the time between two tokens of a
// running answer while a prompt of 4,000 tokens is read, over the median with no
// prompt beside it: of gaps before the prompt and of as many after, since the answer
// itself grows.
func (b *engineBench) gap(ctx context.Context) (float64, float64, error) {
	if b.engine.Window() < longPrompt+longAnswer+17 {
		return 0, 0, errTooDeep
	}
	running, err := b.engine.Submit(ctx, engine.Request{
		Tokens: b.random(16), MaxTokens: longAnswer, IgnoreEOS: true, NoLookup: true, Tenant: "gap",
	})
	if err != nil {
		return 0, 0, err
	}
	defer running.Close()
	plain, err := gaps(ctx, running, func(n int) bool { return n == plainGaps })
	if err != nil {
		return 0, 0, err
	}
	long, err := b.engine.Submit(ctx, engine.Request{Tokens: b.random(longPrompt), MaxTokens: 1, Tenant: "gap"})
	if err != nil {
		return 0, 0, err
	}
	defer long.Close()
	done := make(chan error, 1)
	go func() {
		_, err := read(ctx, long)
		done <- err
	}()
	beside, err := gaps(ctx, running, func(int) bool { return len(done) > 0 })
	if err != nil {
		return 0, 0, err
	}
	if err := <-done; err != nil {
		return 0, 0, err
	}
	after, err := gaps(ctx, running, func(n int) bool { return n == plainGaps })
	if err != nil {
		return 0, 0, err
	}
	plain = append(plain, after...)
	slices.Sort(beside)
	p99 := Percentile(beside, 0.99)
	return p99, p99 / SpreadOf(plain).Median, nil
}

// gaps are the milliseconds between the tokens of a running answer, at least one,
// until enough says that there are enough.
func gaps(ctx context.Context, s *engine.Stream, enough func(n int) bool) (took []float64, err error) {
	for last := (time.Time{}); len(took) == 0 || !enough(len(took)); {
		event, err := s.Next(ctx)
		if err != nil {
			return nil, fmt.Errorf("the running answer ended early: %w", err)
		}
		if _, ok := event.(engine.Delta); !ok {
			continue
		}
		now := time.Now()
		if !last.IsZero() {
			took = append(took, now.Sub(last).Seconds()*1e3)
		}
		last = now
	}
	return took, nil
}
