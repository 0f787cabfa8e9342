package engine_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"ragd/inference/engine"
	"ragd/inference/engine/enginetest"
	"ragd/inference/model"
)

// rowTime is what a row of a prompt adds to a step of the fake decoder.
const rowTime = time.Millisecond

// byRows makes a step take stepTime and rowTime for each row of a prompt.
func byRows(b model.Batch) error {
	wait := stepTime
	for _, p := range b {
		if len(p.Tokens) > p.Logits {
			wait += time.Duration(len(p.Tokens)) * rowTime
		}
	}
	time.Sleep(wait)
	return nil
}

// While a long prompt is read, the next tokens of a running answer come within the
// bound, and the prompt gets on as fast as that allows.
func TestGapIsBounded(t *testing.T) {
	const promptTokens = 1500
	for name, c := range map[string]struct {
		max   time.Duration // as configured
		bound time.Duration
		steps int // the prompt takes at the most
	}{
		"configured":               {40 * time.Millisecond, 40 * time.Millisecond, promptTokens/24 + 8},
		"2.5 decode steps":         {0, 25 * time.Millisecond, promptTokens/11 + 8},
		"no shorter than one step": {time.Millisecond, 18 * time.Millisecond, promptTokens/8 + 8},
		"wide":                     {10 * time.Second, 10*time.Millisecond + 256*rowTime, promptTokens/128 + 20},
	} {
		t.Run(name, func(t *testing.T) {
			dec := enginetest.NewDecoder(256, 4096)
			dec.Before = byRows
			inBubble(t, engine.Config{MaxGap: c.max}, dec, func(t *testing.T, e *engine.Engine) {
				running := submit(t, e, request("a running answer", 400))
				for e.Stats().DecodeStep == 0 {
					time.Sleep(stepTime)
				}
				before := e.Stats().Steps
				long := submit(t, e, request(strings.Repeat("long ", promptTokens/5), 1))
				widest := widestGap(t, running, long)
				if widest > c.bound {
					t.Errorf("a gap of %v, want at most %v", widest, c.bound)
				}
				if n := int(e.Stats().Steps - before); n > c.steps {
					t.Errorf("the prompt took %d steps, want at most %d", n, c.steps)
				}
			})
		})
	}
}

// widestGap reads a running answer until another has its first token.
func widestGap(t *testing.T, running, until *engine.Stream) (widest time.Duration) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		readAll(t, until)
	}()
	for last := time.Now(); ; {
		event, err := running.Next(context.WithoutCancel(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := event.(engine.Delta); ok {
			widest = max(widest, time.Since(last))
			last = time.Now()
		}
		select {
		case <-done:
			running.Close()
			return widest
		default:
		}
	}
}
