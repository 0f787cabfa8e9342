package engine_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"ragd/inference/engine"
	"ragd/inference/engine/enginetest"
)

// The forecast is what comes: alone, beside a running answer, behind a queue, and
// with part of the prompt in the cache.
func TestForecastIsWhatComes(t *testing.T) {
	// Depth costs nothing here, so the error that its assumed weight makes is in these
	// bounds; so are rows that are too few to fill a step.
	const tolerance = 0.25
	for name, prepare := range map[string]func(t *testing.T, e *engine.Engine) []*engine.Stream{
		"alone": func(*testing.T, *engine.Engine) []*engine.Stream { return nil },
		"beside answers": func(t *testing.T, e *engine.Engine) []*engine.Stream {
			return []*engine.Stream{submit(t, e, request("one", 300)), submit(t, e, request("two", 300))}
		},
		"behind prompts": func(t *testing.T, e *engine.Engine) (out []*engine.Stream) {
			for _, c := range "abc" {
				out = append(out, submit(t, e, request(strings.Repeat(string(c), 400), 60)))
			}
			return out
		},
		"in the queue": func(t *testing.T, e *engine.Engine) (out []*engine.Stream) {
			for _, c := range "abcdef" {
				out = append(out, submit(t, e, request(strings.Repeat(string(c), 200), 60)))
			}
			return out
		},
	} {
		t.Run(name, func(t *testing.T) {
			dec := enginetest.NewDecoder(512, 4096)
			dec.Before = byRows
			inBubble(t, engine.Config{MaxRunning: 4, NoLookup: true}, dec, func(t *testing.T, e *engine.Engine) {
				if e.FirstToken(100, 0, time.Time{}) != 0 {
					t.Error("a forecast before anything was measured")
				}
				// Answers of the length that is to come, one beside a prompt.
				for range 6 {
					first := submit(t, e, request(strings.Repeat("x", 150), 60))
					time.Sleep(200 * time.Millisecond)
					run(t, e, request(strings.Repeat("y", 300), 60))
					readAll(t, first)
				}
				others := prepare(t, e)
				time.Sleep(35 * time.Millisecond)
				text := request(strings.Repeat("z", 333), 5)
				want := e.FirstToken(len(text.Tokens), e.Warm("", text.Tokens), time.Time{})
				a := run(t, e, text)
				got := a.done.Times.FirstToken.Sub(a.done.Times.Submitted)
				if off := math.Abs(want.Seconds()-got.Seconds()) / got.Seconds(); off > tolerance {
					t.Errorf("predicted %v, it took %v", want, got)
				}
				for _, s := range others {
					readAll(t, s)
				}
				warm := e.Warm("", text.Tokens)
				if warm != 320 || e.Warm("another", text.Tokens) != 0 {
					t.Errorf("%d tokens are warm, want 320 for this tenant and none for another", warm)
				}
				if cold, again := e.FirstToken(333, 0, time.Time{}), e.FirstToken(333, warm, time.Time{}); again > cold/5 {
					t.Errorf("warm %v, cold %v", again, cold)
				}
			})
		})
	}
}

// Where blocks run out before places, the forecast waits for those that hold them.
func TestForecastKnowsOfBlocks(t *testing.T) {
	dec := enginetest.NewDecoder(64, 4096)
	dec.Before = byRows
	inBubble(t, engine.Config{MaxRunning: 8, NoLookup: true}, dec, func(t *testing.T, e *engine.Engine) {
		for range 6 {
			first := submit(t, e, request(strings.Repeat("x", 150), 200))
			time.Sleep(200 * time.Millisecond)
			run(t, e, request(strings.Repeat("y", 300), 200))
			readAll(t, first)
		}
		var others []*engine.Stream
		for _, c := range "abcd" {
			// 14 blocks each: all run, and the next prompt has a place but no room.
			others = append(others, submit(t, e, request(strings.Repeat(string(c), 16), 200)))
		}
		time.Sleep(35 * time.Millisecond)
		if st := e.Stats(); st.Running != 4 || st.BlocksFree != 8 {
			t.Fatalf("%+v", st)
		}
		want := e.FirstToken(333, 0, time.Time{})
		a := run(t, e, request(strings.Repeat("z", 333), 5))
		got := a.done.Times.FirstToken.Sub(a.done.Times.Submitted)
		if off := math.Abs(want.Seconds()-got.Seconds()) / got.Seconds(); off > 0.25 {
			t.Errorf("predicted %v, it took %v", want, got)
		}
		if q := a.done.Times.Queue(); q < got/2 {
			t.Errorf("it waited %v of %v: no blocks were missing", q, got)
		}
		for _, s := range others {
			readAll(t, s)
		}
	})
}
