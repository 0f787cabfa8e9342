package engine_test

import (
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"ragd/inference/engine"
	"ragd/inference/engine/enginetest"
	"ragd/inference/model"
	"ragd/inference/sample"
)

func TestQueueIsBounded(t *testing.T) {
	dec := enginetest.NewDecoder(64, 256)
	dec.Before = slowly
	inBubble(t, engine.Config{MaxRunning: 1, MaxQueue: 2}, dec, func(t *testing.T, e *engine.Engine) {
		run(t, e, request("a first one, to measure", 10))
		streams := []*engine.Stream{submit(t, e, request("a", 10))}
		synctest.Wait()
		for range 2 {
			streams = append(streams, submit(t, e, request("a", 10)))
		}
		_, err := e.Submit(t.Context(), request("one too many", 10))
		var full *engine.QueueFullError
		if !errors.Is(err, engine.ErrQueueFull) || !errors.As(err, &full) {
			t.Fatalf("error %v, want ErrQueueFull", err)
		}
		if full.Waiting != 2 || full.Limit != 2 {
			t.Errorf("%+v, want 2 of 2", full)
		}
		// About 30 tokens to decode, one a step.
		if full.Wait < 25*stepTime || full.Wait > 35*stepTime {
			t.Errorf("predicted wait %v, want about %v", full.Wait, 30*stepTime)
		}
		for _, s := range streams {
			readAll(t, s)
		}
		if st := e.Stats(); st.Refused != 1 || st.Completed != 4 {
			t.Errorf("%+v, want 1 refused and 4 completed", st)
		}
		run(t, e, request("there is room again", 2))
	})
}

func TestPositionsMoveUp(t *testing.T) {
	dec := enginetest.NewDecoder(64, 256)
	dec.Before = slowly
	inBubble(t, engine.Config{MaxRunning: 1}, dec, func(t *testing.T, e *engine.Engine) {
		for range 3 {
			submit(t, e, request("ahead", 5))
		}
		synctest.Wait()
		last := submit(t, e, request("last", 5))
		if a := readAll(t, last); !slices.Equal(a.positions, []int{3, 2, 1}) {
			t.Errorf("positions %v, want 3, 2, 1", a.positions)
		}
	})
}

// However much one tenant has waiting, the first request of another is next, also
// when the queue is full, and says so at once.
func TestAFloodDelaysNoOtherTenant(t *testing.T) {
	dec := enginetest.NewDecoder(64, 256)
	dec.Before = slowly
	inBubble(t, engine.Config{MaxRunning: 2, MaxQueue: 100}, dec, func(t *testing.T, e *engine.Engine) {
		flood := request("q", 10)
		flood.Tenant = "flood"
		for range 102 {
			submit(t, e, flood)
		}
		synctest.Wait() // two of them run
		if _, err := e.Submit(t.Context(), flood); !errors.Is(err, engine.ErrQueueFull) {
			t.Errorf("a request beyond the queue: %v, want ErrQueueFull", err)
		}
		late := flood
		late.Tenant = "latecomer"
		a := run(t, e, late)
		if got := a.done.Times.Queue(); got > 10*stepTime {
			t.Errorf("the latecomer waited %v behind another tenant's flood, want one answer at the most", got)
		}
		if !slices.Equal(a.positions, []int{1}) {
			t.Errorf("positions %v, want 1 from the start", a.positions)
		}
		// It was served 11 tokens and the flood 22 and more, so it comes next again.
		if got := run(t, e, late).done.Times.Queue(); got > 10*stepTime {
			t.Errorf("its next request waited %v, want one answer at the most", got)
		}
	})
}

// A tenant whose answers are long gets fewer of them.
func TestTenantsAreServedTokensAlike(t *testing.T) {
	dec := enginetest.NewDecoder(64, 256)
	dec.Before = slowly
	inBubble(t, engine.Config{MaxRunning: 1}, dec, func(t *testing.T, e *engine.Engine) {
		served := map[string]*atomic.Int64{"long": {}, "short": {}}
		var streams []*engine.Stream
		for tenant, tokens := range map[string]int{"long": 60, "short": 15} {
			for range 8 {
				r := request("q", tokens)
				r.Tenant = tenant
				s := submit(t, e, r)
				streams = append(streams, s)
				go func() {
					if a := readAll(t, s); a.done.Times.Last.Sub(a.done.Times.Submitted) < 300*stepTime {
						served[tenant].Add(int64(len(a.tokens)))
					}
				}()
			}
		}
		time.Sleep(300 * stepTime)
		synctest.Wait()
		if l, s := served["long"].Load(), served["short"].Load(); l-s > 75 || s-l > 75 {
			t.Errorf("%d tokens of long answers, %d of short ones; want as many within one of each", l, s)
		}
		for _, s := range streams {
			s.Close()
		}
	})
}

// Memory for all of an answer is there before it starts.
func TestAdmissionNeverOvercommits(t *testing.T) {
	const blocks = 8
	dec := enginetest.NewDecoder(blocks, 1024)
	inBubble(t, engine.Config{}, dec, func(t *testing.T, e *engine.Engine) {
		most := 0
		dec.Before = func(b model.Batch) error {
			held := make(map[int32]bool)
			for _, piece := range b {
				for _, id := range piece.Blocks {
					held[id] = true
				}
			}
			if used := e.Stats().BlocksUsed; len(held) > used || used > blocks {
				t.Errorf("%d blocks in the batch, %d used of %d", len(held), used, blocks)
			}
			most = max(most, len(b))
			return slowly(b)
		}
		var streams []*engine.Stream
		for i := range 6 {
			streams = append(streams, submit(t, e, request(strings.Repeat(string(rune('a'+i)), 20), 29)))
		}
		for _, s := range streams {
			if a := readAll(t, s); a.done.Reason != engine.ReasonLength {
				t.Errorf("%+v %v, want all 29 tokens", a.done, a.failed.Err)
			}
		}
		if most != 2 {
			t.Errorf("%d answers of 3 blocks at once in %d blocks, want 2", most, blocks)
		}
	})
}

// The last token of an answer is never run, so it takes no room.
func TestLastTokenTakesNoRoom(t *testing.T) {
	dec := enginetest.NewDecoder(2, 256)
	dec.Before = slowly
	inBubble(t, engine.Config{}, dec, func(t *testing.T, e *engine.Engine) {
		first, second := submit(t, e, request("12345678", 9)), submit(t, e, request("abcdefgh", 9))
		readAll(t, first)
		if got := readAll(t, second).done.Times.Queue(); got > stepTime {
			t.Errorf("the second request of 16 positions waited %v for its block", got)
		}
	})
}

// A step that mixes both is charged to the prompt without its decoding part.
func TestMeasuredRates(t *testing.T) {
	dec := enginetest.NewDecoder(64, 1024)
	dec.Before = func(b model.Batch) error {
		wait := stepTime
		for _, piece := range b {
			if n := len(piece.Tokens); n > 1 {
				wait += time.Duration(n) * time.Millisecond
			}
		}
		time.Sleep(wait)
		return nil
	}
	inBubble(t, engine.Config{}, dec, func(t *testing.T, e *engine.Engine) {
		if st := e.Stats(); st.PrefillRate != 0 || st.DecodeStep != 0 || st.Wait != 0 {
			t.Errorf("before the first step: %+v", st)
		}
		decoding := submit(t, e, request("x", 30))
		time.Sleep(5 * stepTime)
		run(t, e, request(strings.Repeat("long", 50), 1))
		st := e.Stats()
		if st.PrefillRate < 999 || st.PrefillRate > 1001 || st.DecodeStep != stepTime {
			t.Errorf("%v prompt tokens a second and %v a step, want 1000 and %v", st.PrefillRate, st.DecodeStep, stepTime)
		}
		if st.Wait != 0 {
			t.Errorf("a wait of %v with places free and no prompt ahead", st.Wait)
		}
		long := submit(t, e, request(strings.Repeat("another", 60), 1))
		if got := e.Stats().Wait; got < 419*time.Millisecond || got > 421*time.Millisecond {
			t.Errorf("a wait of %v behind a prompt of 420 tokens, want 420 ms", got)
		}
		readAll(t, long)
		readAll(t, decoding)
	})
}

// A long prompt goes in pieces, and those who decode go on beside it.
func TestLongPromptDoesNotStopDecoding(t *testing.T) {
	dec := enginetest.NewDecoder(128, 2048)
	cfg := engine.Config{StepTokens: 32, PieceTokens: 24}
	inBubble(t, cfg, dec, func(t *testing.T, e *engine.Engine) {
		dec.Before = func(b model.Batch) error {
			if b.Tokens() > cfg.StepTokens {
				t.Errorf("a step of %d tokens, the limit is %d", b.Tokens(), cfg.StepTokens)
			}
			for _, piece := range b {
				if len(piece.Tokens) > cfg.PieceTokens {
					t.Errorf("a piece of %d tokens, the limit is %d", len(piece.Tokens), cfg.PieceTokens)
				}
			}
			return slowly(b)
		}
		short := submit(t, e, request("short", 30))
		time.Sleep(2 * stepTime)
		long := submit(t, e, request(strings.Repeat("long", 200), 1))
		if got := readAll(t, short).done.Times.Decode(); got != 29*stepTime {
			t.Errorf("30 tokens beside a long prompt took %v, want %v", got, 29*stepTime)
		}
		readAll(t, long)
	})
}

func TestRefusals(t *testing.T) {
	inBubble(t, engine.Config{}, enginetest.NewDecoder(4, 1024), func(t *testing.T, e *engine.Engine) {
		if e.Window() != 64 {
			t.Fatalf("window %d, want the 64 tokens of 4 blocks", e.Window())
		}
		hot := request("q", 1)
		hot.Sampling.Temperature = -1
		for _, c := range []struct {
			name string
			r    engine.Request
			is   error
			text string
		}{
			{"no prompt", engine.Request{MaxTokens: 1}, engine.ErrInvalid, "no tokens"},
			{"no answer", request("q", 0), engine.ErrInvalid, "max tokens is 0"},
			{"negative answer", request("q", -1), engine.ErrInvalid, "max tokens is -1"},
			{"an id past the vocabulary", engine.Request{Tokens: []int32{1, 258}, MaxTokens: 1}, engine.ErrInvalid, "token 1 is 258"},
			{"a negative id", engine.Request{Tokens: []int32{-1}, MaxTokens: 1}, engine.ErrInvalid, "token 0 is -1"},
			{"a negative temperature", hot, sample.ErrParams, "temperature is -1"},
			{"the same, for the caller", hot, engine.ErrInvalid, "sampling"},
		} {
			_, err := e.Submit(t.Context(), c.r)
			if !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s: %v, want %v naming %q", c.name, err, c.is, c.text)
			}
		}
		for _, r := range []engine.Request{request(strings.Repeat("q", 60), 5), request("q", 64), request(strings.Repeat("q", 65), 1), request("q", int(^uint(0)>>1))} {
			_, err := e.Submit(t.Context(), r)
			var long *engine.TooLongError
			if !errors.As(err, &long) || long.Window != 64 || long.Tokens <= 64 {
				t.Errorf("%d + %d tokens: %v, want TooLongError for 64", len(r.Tokens), r.MaxTokens, err)
			}
		}
		if a := run(t, e, request(strings.Repeat("q", 60), 4)); a.done.Reason != engine.ReasonLength {
			t.Errorf("what just fits ended with %+v", a)
		}
	})
}

func TestConfigIsChecked(t *testing.T) {
	for text, cfg := range map[string]engine.Config{
		"MaxRunning is -1":  {MaxRunning: -1},
		"MaxQueue is -5":    {MaxQueue: -5},
		"PieceTokens is -2": {PieceTokens: -2},
		"StepTokens is 3":   {MaxRunning: 4, StepTokens: 3},
	} {
		_, err := engine.New(enginetest.NewDecoder(4, 64), enginetest.Tokenizer{}, cfg)
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%+v: %v, want an error naming %q", cfg, err, text)
		}
	}
	if _, err := engine.New(enginetest.NewDecoder(0, 64), enginetest.Tokenizer{}, engine.Config{}); err == nil {
		t.Error("a decoder without blocks was taken")
	}
}
