package engine_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"ragd/inference/engine"
	"ragd/inference/engine/enginetest"
	"ragd/inference/model"
	"ragd/inference/sample"
)

// stepTime is what a step of the fake decoder takes on the clock of the bubble.
const stepTime = 10 * time.Millisecond

// slowly makes each step take stepTime.
func slowly(model.Batch) error {
	time.Sleep(stepTime)
	return nil
}

// inBubble runs f with an engine in a bubble with a clock of its own. The
// bubble ends only when every goroutine has: a leak fails the test.
func inBubble(t *testing.T, cfg engine.Config, dec model.Decoder, f func(*testing.T, *engine.Engine)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.New(dec, enginetest.Tokenizer{}, cfg)
		if err != nil {
			t.Fatal(err)
		}
		f(t, e)
		if err := e.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
		if s := e.Stats(); s.BlocksUsed != 0 || s.Running != 0 || s.Queued != 0 {
			t.Errorf("after close: %+v", s)
		}
	})
}

// prompt is text as tokens.
func prompt(text string) []int32 { return enginetest.Tokenizer{}.Encode(nil, text) }

// request is a plain greedy request.
func request(text string, maxTokens int) engine.Request {
	return engine.Request{Tokens: prompt(text), MaxTokens: maxTokens, Sampling: sample.Params{}}
}

func submit(t *testing.T, e *engine.Engine, r engine.Request) *engine.Stream {
	t.Helper()
	s, err := e.Submit(t.Context(), r)
	if err != nil {
		t.Fatalf("submit: %v", err)
	}
	return s
}

// answer is all a stream had to say.
type answer struct {
	text      string
	tokens    []int32
	deltas    int
	positions []int
	scheduled engine.Scheduled
	done      engine.Done
	failed    engine.Failed
}

// readAll reads a stream to its end and checks the order of its events.
func readAll(t *testing.T, s *engine.Stream) answer {
	t.Helper()
	var a answer
	var text strings.Builder
	stage := 0
	for {
		event, err := s.Next(context.WithoutCancel(t.Context()))
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("next: %v", err)
		}
		at := 0
		switch ev := event.(type) {
		case engine.Queued:
			a.positions = append(a.positions, ev.Position)
		case engine.Scheduled:
			at, a.scheduled = 1, ev
		case engine.Delta:
			at = 2
			a.deltas++
			text.WriteString(ev.Text)
			a.tokens = append(a.tokens, ev.Tokens...)
		case engine.Done:
			at, a.done = 3, ev
		case engine.Failed:
			at, a.failed = 3, ev
		}
		if at < stage || stage == 3 {
			t.Fatalf("%T after stage %d", event, stage)
		}
		stage = at
	}
	if stage != 3 {
		t.Fatal("the stream ended without Done or Failed")
	}
	a.text = text.String()
	return a
}

// run submits a request and reads its answer.
func run(t *testing.T, e *engine.Engine, r engine.Request) answer {
	t.Helper()
	return readAll(t, submit(t, e, r))
}
