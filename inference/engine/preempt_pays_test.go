package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"ragd/inference/engine"
	"ragd/inference/engine/enginetest"
	"ragd/inference/model"
)

// Blocks that are taken as answers grow, beside blocks that are reserved: 24 requests of
// 80 tokens, each allowed 512, come at once to a cache of 1,600 tokens. Steps cost about
// what SmolLM2-135M takes on two threads, on the clock of the bubble, so that the figures
// are nearly the same in each run and on each machine. Whatever the answers come to, all
// together are done sooner and the first tokens come earlier, also where every answer is
// as long as it may be and a tenth of it is read again.
func TestGrowingBlocksPays(t *testing.T) {
	for name, length := range map[string]func(i int) int{
		"short answers": func(i int) int { return 16 + i*7%49 },
		"long answers":  func(int) int { return 512 },
		"one in three is long": func(i int) int {
			if i%3 == 0 {
				return 512
			}
			return 16
		},
	} {
		reserved, grown := crowdInBubble(t, true, length), crowdInBubble(t, false, length)
		if reserved.preemptions > 0 || grown.took > reserved.took*95/100 || grown.first > reserved.first*9/10 {
			t.Errorf("%s: %+v with blocks reserved, %+v with blocks that grow", name, reserved, grown)
		}
		t.Logf("%s: all done in %.2f times the time, first tokens (95 %%) in %.2f; %d preemptions, %d of %d tokens run again, longest pause %v", name,
			grown.took.Seconds()/reserved.took.Seconds(), grown.first.Seconds()/reserved.first.Seconds(), grown.preemptions, grown.recomputed, grown.tokens, grown.pause)
	}
}

// fared is how a crowd fared.
type fared struct {
	took, first, pause              time.Duration // first: 95th percentile to the first token
	tokens, preemptions, recomputed int
}

// crowdInBubble submits the requests and gives each answer up where it has its length, as
// if the model had ended it there.
func crowdInBubble(t *testing.T, reserve bool, length func(i int) int) (f fared) {
	const requests = 24
	dec := enginetest.NewDecoder(100, 4096)
	dec.Before = func(b model.Batch) error {
		ms := 2.5
		for _, p := range b {
			ms += float64(len(p.Tokens)) * (0.45 + 1.2e-3*float64(p.Start))
		}
		time.Sleep(time.Duration(ms * float64(time.Millisecond)))
		return nil
	}
	inBubble(t, engine.Config{NoPreemption: reserve, NoLookup: true}, dec, func(t *testing.T, e *engine.Engine) {
		began, ends := time.Now(), make(chan engine.Done)
		for i := range requests {
			r := request(strings.Repeat(fmt.Sprintf("question %d ", i), 10)[:80], 512)
			r.IgnoreEOS = true
			s := submit(t, e, r)
			go func() { ends <- readUntil(t, s, length(i)) }()
		}
		var firsts []time.Duration
		for range requests {
			d := <-ends
			firsts = append(firsts, d.Times.FirstToken.Sub(d.Times.Submitted))
			f.tokens += d.Usage.OutputTokens
			f.preemptions += d.Usage.Preemptions
			f.recomputed += d.Usage.RecomputedTokens
			f.pause = max(f.pause, d.Times.Preempted)
		}
		slices.Sort(firsts)
		f.took, f.first = time.Since(began), firsts[requests*95/100]
	})
	return f
}

// readUntil reads so many tokens, leaves, and returns how the answer ended.
func readUntil(t *testing.T, s *engine.Stream, tokens int) (end engine.Done) {
	for got := 0; ; {
		event, err := s.Next(context.WithoutCancel(t.Context()))
		if errors.Is(err, io.EOF) {
			return end
		}
		switch ev := event.(type) {
		case engine.Delta:
			if got += len(ev.Tokens); got >= tokens {
				s.Close()
			}
		case engine.Done:
			end = ev
		case engine.Failed:
			t.Error(ev.Err)
		}
	}
}
