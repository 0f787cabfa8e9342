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
// running answer while a prompt of 4,000 tokens is read, and the 99th percentile of the
// same gaps over those without a prompt. These are measured before the prompt and after
// it, when the answer has become some thousands of tokens longer and each of its tokens
// takes more than twice as long, so each gap is compared with what lies on the line
// between the two: with the step that the same answer would have had without the prompt.
// The gaps without the prompt are themselves not equal on a machine that others use; the
// detail gives their 99th percentile over their medians.
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
	first, last := SpreadOf(plain).Median, SpreadOf(after).Median
	over := overPlain(beside, first, last)
	without := append(overPlain(plain, first, first), overPlain(after, last, last)...)
	slices.Sort(without)
	b.detail = fmt.Sprintf("without the prompt the 99th percentile is %.2f times the median", Percentile(without, 0.99))
	slices.Sort(beside)
	slices.Sort(over)
	return Percentile(beside, 0.99), Percentile(over, 0.99), nil
}

// overPlain is each gap over the plain one at its place between the first and the last.
func overPlain(gaps []float64, first, last float64) []float64 {
	over := make([]float64, len(gaps))
	for i, g := range gaps {
		over[i] = g / (first + (last-first)*(float64(i)+0.5)/float64(len(gaps)))
	}
	return over
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
