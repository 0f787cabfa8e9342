package app

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"ragd/inference/engine"
	"ragd/internal/answer"
)

// stepsAfter is how many more steps the engine may take once a client is known to
// be gone: the one that runs, and one that began while its count was read.
const stepsAfter = 2

// leaveSpy counts the steps between the end of a request's context and the end of
// its generation.
type leaveSpy struct {
	answer.Generator
	engine *engine.Engine
	steps  atomic.Int64 // of the last request whose client left
}

func (s *leaveSpy) Generate(ctx context.Context, req answer.Generation, emit func(answer.Event)) (answer.Generated, error) {
	gone := make(chan int64, 1)
	stop := context.AfterFunc(ctx, func() { gone <- s.engine.Stats().Steps })
	out, err := s.Generator.Generate(ctx, req, emit)
	if !stop() {
		s.steps.Store(s.engine.Stats().Steps - <-gone)
	}
	return out, err
}

// leaving is a way to hang up.
type leaving struct {
	name  string
	req   body
	leave func(resp *http.Response)
	after time.Duration // hang up that long after the engine took the request
	// prefill says that no token of the answer may have been made.
	prefill bool
}

// testClientsLeave: a request whose client is gone is over at once, whatever it
// was at, and counts as cancelled.
func testClientsLeave(t *testing.T, l *live) {
	c := l.notes(t)
	spy := &leaveSpy{Generator: l.ask.Generator, engine: l.gen.engine}
	l.ask.Generator = spy
	defer func() { l.ask.Generator = spy.Generator }()
	prompt := strings.Repeat("Kindly wait for a moment. ", 150)
	for _, how := range []leaving{
		{"in the stream", story(c).with(body{"stream": true}), readDeltas, time.Minute, false},
		{"in prefill", story(c).with(body{"stream": true, "question": prompt + "Which lamp is violet?"}), nil, 0, true},
		{"not streamed", story(c), nil, 100 * time.Millisecond, false},
	} {
		t.Run(how.name, func(t *testing.T) {
			before := len(l.log.rows("cancelled"))
			l.hangUp(t, how)
			eventually(t, func() bool { return len(l.log.rows("cancelled")) == before+1 })
			rows := l.log.rows("cancelled")
			if row := rows[len(rows)-1]; row["output_tokens"] == 0.0 != how.prefill || row["error"] != "cancelled" {
				t.Errorf("log row %v", row)
			}
			if steps := spy.steps.Load(); steps > stepsAfter {
				t.Errorf("the engine went on for %d steps", steps)
			}
			if s := l.gen.stats(); s.Running != 0 || s.Queued != 0 || s.BlocksUsed != 0 {
				t.Errorf("the engine is not idle: %+v", s)
			}
		})
	}
	t.Run("fifty", func(t *testing.T) {
		l.asked(t, story(c).with(body{"budget": body{"answer_tokens": 4}}))
		http.DefaultClient.CloseIdleConnections()
		before := runtime.NumGoroutine()
		for range 50 {
			l.hangUp(t, leaving{req: story(c).with(body{"stream": true}), leave: readDeltas, after: time.Minute})
		}
		eventually(t, func() bool { s := l.gen.stats(); return s.Running == 0 && s.Queued == 0 && s.BlocksUsed == 0 })
		eventually(t, func() bool {
			http.DefaultClient.CloseIdleConnections()
			return runtime.NumGoroutine() <= before
		})
		if after := runtime.NumGoroutine(); after > before {
			t.Errorf("%d goroutines before, %d after", before, after)
		}
		res := l.asked(t, story(c).with(body{"budget": body{"answer_tokens": 4}}))
		if res.Usage.OutputTokens != 4 {
			t.Errorf("the next request: %+v", res.Usage)
		}
		allEnded(t, l.spans.GetSpans())
	})
}

// hangUp asks and leaves.
func (l *live) hangUp(t *testing.T, how leaving) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil && l.gen.stats().Running == 0 {
			time.Sleep(time.Millisecond)
		}
		time.AfterFunc(how.after, cancel)
	}()
	resp, err := l.post(t, ctx, "/ask", how.req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	if how.leave != nil {
		how.leave(resp)
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
}

// readDeltas reads until some of the answer has come.
func readDeltas(resp *http.Response) {
	deltas := 0
	for lines := bufio.NewScanner(resp.Body); deltas < 3 && lines.Scan(); {
		if lines.Text() == "event: delta" {
			deltas++
		}
	}
}
