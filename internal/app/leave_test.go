package app

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"
)

// idleWithin is how long the engine may take to notice that a client is gone: a
// step of decoding or one piece of a prompt, on a busy machine.
const idleWithin = time.Second

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
	prompt := strings.Repeat("Kindly wait for a moment. ", 150)
	for _, how := range []leaving{
		{"in the stream", story(c).with(body{"stream": true}), readDeltas, time.Minute, false},
		{"in prefill", story(c).with(body{"stream": true, "question": prompt + "Which lamp is violet?"}), nil, 0, true},
		{"not streamed", story(c), nil, 100 * time.Millisecond, false},
	} {
		t.Run(how.name, func(t *testing.T) {
			before := len(l.log.rows("cancelled"))
			l.hangUp(t, how)
			began := time.Now()
			eventually(t, func() bool { s := l.gen.stats(); return s.Running == 0 && s.Queued == 0 })
			if took := time.Since(began); took > idleWithin {
				t.Errorf("the engine was idle after %v", took)
			}
			eventually(t, func() bool { return len(l.log.rows("cancelled")) == before+1 })
			rows := l.log.rows("cancelled")
			if row := rows[len(rows)-1]; row["output_tokens"] == 0.0 != how.prefill || row["error"] != "cancelled" {
				t.Errorf("log row %v", row)
			}
			if used := l.gen.stats().BlocksUsed; used != 0 {
				t.Errorf("%d blocks are in use by nobody", used)
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
