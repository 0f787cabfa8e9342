package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ragd/inference/engine"
	"ragd/inference/engine/enginetest"
	"ragd/inference/model"
)

// A caller that leaves in any state frees its blocks within one step.
func TestCancelFreesBlocksWithinAStep(t *testing.T) {
	long := strings.Repeat("x", 400)
	leave := map[string]func(cancel context.CancelFunc, s *engine.Stream){
		"context ends":  func(cancel context.CancelFunc, _ *engine.Stream) { cancel() },
		"stream closed": func(_ context.CancelFunc, s *engine.Stream) { s.Close() },
	}
	for _, c := range []struct {
		name   string
		ahead  bool          // another request holds the only place
		after  time.Duration // when the caller leaves
		output int           // tokens drawn by then
	}{
		{"waiting", true, 3 * stepTime, 0},
		{"prefill", false, 2*stepTime + stepTime/2, 0},
		{"decode", false, 15*stepTime + stepTime/2, 7},
	} {
		for how, leave := range leave {
			t.Run(c.name+", "+how, func(t *testing.T) {
				dec := enginetest.NewDecoder(64, 1024)
				dec.Before = slowly
				cfg := engine.Config{MaxRunning: 1, StepTokens: 40, PieceTokens: 40}
				inBubble(t, cfg, dec, func(t *testing.T, e *engine.Engine) {
					var ahead *engine.Stream
					if c.ahead {
						ahead = submit(t, e, request("ahead", 100))
					}
					ctx, cancel := context.WithCancel(t.Context())
					defer cancel()
					s, err := e.Submit(ctx, request(long, 100))
					if err != nil {
						t.Fatal(err)
					}
					time.Sleep(c.after)
					leave(cancel, s)
					left := time.Now()
					a := readAll(t, s)
					if waited := time.Since(left); waited > stepTime {
						t.Errorf("ended %v after the caller left, a step takes %v", waited, stepTime)
					}
					want := 0
					if c.ahead {
						want = 7
					}
					if st := e.Stats(); st.BlocksUsed != want || st.Cancelled != 1 || st.Failed != 0 {
						t.Errorf("%d blocks used, want %d; %+v", st.BlocksUsed, want, st)
					}
					if a.done.Reason != engine.ReasonCancelled || a.done.Usage.OutputTokens != c.output {
						t.Errorf("%+v, want cancelled after %d tokens", a.done, c.output)
					}
					if ahead != nil && readAll(t, ahead).done.Reason != engine.ReasonLength {
						t.Error("the request ahead was disturbed")
					}
				})
			})
		}
	}
}

// Whoever waits and leaves is gone at once, in the middle of a step that takes long,
// and those behind move up.
func TestQueuedRequestsLeaveDuringAStep(t *testing.T) {
	dec := enginetest.NewDecoder(64, 1024)
	dec.Before = func(model.Batch) error {
		time.Sleep(time.Hour)
		return nil
	}
	inBubble(t, engine.Config{MaxRunning: 1}, dec, func(t *testing.T, e *engine.Engine) {
		ahead := submit(t, e, request("ahead", 1))
		synctest.Wait() // in its step
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		began := time.Now()
		byContext, err := e.Submit(ctx, request("leaves", 5))
		if err != nil {
			t.Fatal(err)
		}
		byClose, behind := submit(t, e, request("leaves", 5)), submit(t, e, request("stays", 1))
		cancel()
		byClose.Close()
		for _, s := range []*engine.Stream{byContext, byClose} {
			if a := readAll(t, s); a.done.Reason != engine.ReasonCancelled {
				t.Errorf("%+v, want cancelled", a.done)
			}
		}
		st := e.Stats()
		if waited := time.Since(began); waited != 0 || st.Steps != 0 || st.Queued != 1 || st.Cancelled != 2 {
			t.Errorf("they ended after %v, want at once in the first step; %+v", waited, st)
		}
		event, err := behind.Next(t.Context())
		if q, ok := event.(engine.Queued); !ok || q.Position != 1 {
			t.Errorf("%+v, %v; want place 1", event, err)
		}
		readAll(t, ahead)
		readAll(t, behind)
	})
}

func TestFiftyCancelledThenOneNormal(t *testing.T) {
	dec := enginetest.NewDecoder(64, 1024)
	dec.Before = slowly
	inBubble(t, engine.Config{}, dec, func(t *testing.T, e *engine.Engine) {
		normal := request("a normal question", 10)
		before := run(t, e, normal)
		for i := range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%7)*stepTime+stepTime/3)
			s, err := e.Submit(ctx, request(strings.Repeat("y", 300+i), 200))
			if err != nil {
				t.Fatal(err)
			}
			if got := readAll(t, s).done.Reason; got != engine.ReasonCancelled {
				t.Fatalf("request %d ended with %q", i, got)
			}
			cancel()
		}
		if st := e.Stats(); st.BlocksUsed != 0 || st.Running != 0 || st.Cancelled != 50 {
			t.Errorf("after 50 cancels: %+v", st)
		}
		after := run(t, e, normal)
		took := func(a answer) time.Duration { return a.done.Times.Last.Sub(a.done.Times.Submitted) }
		if after.text != before.text || took(after) > took(before) {
			t.Errorf("%q in %v, before %q in %v", after.text, took(after), before.text, took(before))
		}
	})
}

func TestCloseAfterTheEndDoesNothing(t *testing.T) {
	inBubble(t, engine.Config{}, enginetest.NewDecoder(16, 256), func(t *testing.T, e *engine.Engine) {
		s := submit(t, e, request("q", 3))
		synctest.Wait()
		s.Close()
		if a := readAll(t, s); a.done.Reason != engine.ReasonLength || len(a.tokens) != 3 {
			t.Errorf("%s with %d tokens, want the whole answer", a.done.Reason, len(a.tokens))
		}
		if st := e.Stats(); st.Cancelled != 0 || st.Completed != 1 {
			t.Errorf("%+v, want one completed", st)
		}
	})
}

func TestNextReturnsWhenItsContextEnds(t *testing.T) {
	dec := enginetest.NewDecoder(16, 256)
	dec.Before = slowly
	inBubble(t, engine.Config{}, dec, func(t *testing.T, e *engine.Engine) {
		s := submit(t, e, request("q", 3))
		ctx, cancel := context.WithTimeout(t.Context(), stepTime/2)
		defer cancel()
		var err error
		for err == nil {
			_, err = s.Next(ctx)
		}
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Next: %v, want the end of its context", err)
		}
	})
}
