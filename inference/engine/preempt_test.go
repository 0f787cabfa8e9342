package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"ragd/inference/engine"
	"ragd/inference/engine/enginetest"
	"ragd/inference/model"
	"ragd/inference/sample"
)

// expectShort makes the engine expect answers of one token, so that the long ones that
// follow start together, with one block of 16 tokens beyond their prompt.
func expectShort(t *testing.T, e *engine.Engine) {
	t.Helper()
	run(t, e, request("short", 1))
}

// long is a request of one block of prompt and an answer of that many tokens.
func long(name string, tokens int) engine.Request {
	r := request(strings.Repeat(name, 16)[:16], tokens)
	r.IgnoreEOS = true
	return r
}

// Answers that had to pause, once or more, are those of an undisturbed run, whatever
// state they have: generator, penalties, grammar, stop texts, half a character, drafts,
// confidence. Nothing is told twice, and the rows that the decoder ran are those that
// the requests say, each once.
func TestPreemptedAnswersAreUndisturbed(t *testing.T) {
	vocabulary := sample.NewVocabulary(enginetest.Vocabulary, enginetest.Tokenizer{}.Piece, []int32{enginetest.EOS})
	requests := func(lookup bool) (out []engine.Request) {
		for i, p := range []sample.Params{
			{},
			{Temperature: 1, Seed: 3},
			{RepetitionPenalty: 1.2},
			{Temperature: .7, TopP: .9, TopK: 30, RepetitionPenalty: 1.1, Seed: 4},
			{Temperature: 1, Seed: 5, Grammar: sample.NewJSON(vocabulary, enginetest.Tokenizer{}.Piece)},
			{Temperature: 1, Seed: 6},
		} {
			r := long(fmt.Sprintf("%d. ", i), 150)
			r.Sampling, r.Stop, r.Confidence, r.NoLookup = p, []string{"never said"}, true, !lookup
			out = append(out, r)
		}
		return out
	}
	for _, lookup := range []bool{false, true} {
		t.Run(fmt.Sprintf("lookup %v", lookup), func(t *testing.T) {
			var want, got []answer
			inBubble(t, engine.Config{}, reciting(300, nil), func(t *testing.T, e *engine.Engine) {
				for _, r := range requests(false) {
					want = append(want, run(t, e, r))
				}
			})
			rows := 0
			dec := reciting(20, &rows)
			inBubble(t, engine.Config{}, dec, func(t *testing.T, e *engine.Engine) {
				expectShort(t, e)
				rows = 0
				var streams []*engine.Stream
				for _, r := range requests(lookup) {
					streams = append(streams, submit(t, e, r))
				}
				for _, s := range streams {
					got = append(got, readAll(t, s))
				}
				checkRows(t, e, got, rows)
			})
			for i := range want {
				w, g := want[i], got[i]
				if g.text != w.text || !slices.Equal(g.tokens, w.tokens) || g.done.Reason != w.done.Reason || g.done.Confidence != w.done.Confidence {
					t.Errorf("request %d, preempted %d times: %q (%s), undisturbed %q (%s)", i, g.done.Usage.Preemptions, g.text, g.done.Reason, w.text, w.done.Reason)
				}
			}
		})
	}
}

// reciting is a decoder that repeats a text with characters of several bytes, where
// nothing else is drawn, so that lookup has something to find, and counts the rows it
// runs.
func reciting(blocks int, rows *int) *enginetest.Decoder {
	const text = "값은 3°C, 그리고 🙂. "
	dec := enginetest.NewDecoder(blocks, 4096)
	dec.Next = func(tokens []int32) int32 { return int32(text[len(tokens)%len(text)]) }
	dec.Before = func(b model.Batch) error {
		if rows != nil {
			*rows += b.Tokens()
		}
		return slowly(b)
	}
	return dec
}

// checkRows checks that the decoder ran what the answers say it ran for them.
func checkRows(t *testing.T, e *engine.Engine, answers []answer, rows int) {
	t.Helper()
	var preemptions, recomputed, said, refused int
	for _, a := range answers {
		u := a.done.Usage
		preemptions += u.Preemptions
		recomputed += u.RecomputedTokens
		// The last token of an answer is not run.
		said += u.InputTokens - u.CachedTokens + u.OutputTokens - 1 + u.RecomputedTokens
		refused += u.DraftedTokens - u.AcceptedTokens
		if n := len(a.tokens); u.OutputTokens != n {
			t.Errorf("%d tokens told, %d counted", n, u.OutputTokens)
		}
		if (u.Preemptions > 0) != (a.done.Times.Preempted > 0) || a.done.Times.Preempted > a.done.Times.Prefill()+a.done.Times.Decode() {
			t.Errorf("%+v, %+v", u, a.done.Times)
		}
	}
	st := e.Stats()
	if preemptions < 3 || int64(preemptions) != st.Preemptions || int64(recomputed) != st.RecomputedTokens {
		t.Errorf("%d preemptions, %d tokens run again; the engine says %+v", preemptions, recomputed, st)
	}
	if rows != said+refused {
		t.Errorf("%d rows were run, the answers say %d", rows, said+refused)
	}
}

// What was preempted counts as waited, in decode: the stages add up to the whole as
// always, and the time away is told beside them. When nobody needed more of its blocks
// than the one that made it pause, only that one is read again.
func TestPreemptionIsReported(t *testing.T) {
	dec := enginetest.NewDecoder(12, 1024)
	dec.Before = slowly
	inBubble(t, engine.Config{NoLookup: true}, dec, func(t *testing.T, e *engine.Engine) {
		expectShort(t, e)
		// Each has 6 blocks with its 81st token; then one needs a seventh.
		first, second := submit(t, e, long("a", 90)), submit(t, e, long("b", 150))
		a, b := readAll(t, first).done, readAll(t, second).done
		if a.Usage.Preemptions != 0 || a.Times.Decode() != 89*stepTime {
			t.Errorf("the first was disturbed: %+v", a)
		}
		if b.Usage.Preemptions != 1 || b.Usage.RecomputedTokens != model.BlockTokens || b.Usage.CachedTokens != 0 {
			t.Errorf("%+v, want one preemption and one block to run again", b.Usage)
		}
		if got := b.Times.Preempted; got < 8*stepTime || got > 12*stepTime {
			t.Errorf("it was away for %v, the other went on for about 10 steps", got)
		}
		whole := b.Times.Last.Sub(b.Times.Submitted)
		if sum := b.Times.Queue() + b.Times.Prefill() + b.Times.Decode(); sum != whole || b.Times.Queue() != 0 {
			t.Errorf("queue %v, prefill %v, decode %v of %v", b.Times.Queue(), b.Times.Prefill(), b.Times.Decode(), whole)
		}
		if got := b.Times.Decode() - b.Times.Preempted; got != 149*stepTime {
			t.Errorf("decoding took %v without the time away, want %v", got, 149*stepTime)
		}
		if st := e.Stats(); st.InputTokens != 5+2*16 || st.OutputTokens != 1+90+150 || st.CachedTokens != 0 {
			t.Errorf("counted twice: %+v", st)
		}
	})
}

// The one to pause is of the tenant that had the most, and not the one that has run the
// longest.
func TestWhoPauses(t *testing.T) {
	dec := enginetest.NewDecoder(18, 1024)
	dec.Before = slowly
	inBubble(t, engine.Config{NoLookup: true}, dec, func(t *testing.T, e *engine.Engine) {
		expectShort(t, e)
		ask := func(tenant, prompt string, tokens int) *engine.Stream {
			r := long(prompt, tokens)
			r.Tenant = tenant
			return submit(t, e, r)
		}
		greedy := ask("greedy", "a", 200)
		synctest.Wait()
		again := ask("greedy", "b", 180)
		synctest.Wait()
		modest := ask("modest", "c", 100)
		for name, c := range map[string]struct {
			s    *engine.Stream
			want bool
		}{"the first of all": {greedy, false}, "the second of the greedy tenant": {again, true}, "the modest one, which started last": {modest, false}} {
			if got := readAll(t, c.s).done.Usage.Preemptions; (got > 0) != c.want {
				t.Errorf("%s was preempted %d times, want it: %v", name, got, c.want)
			}
		}
	})
}

// A bound on the answer far above what answers come to keeps nobody waiting; with
// NoPreemption it does, and nothing pauses.
func TestLargeBoundsKeepNobodyWaiting(t *testing.T) {
	for _, c := range []struct {
		reserve bool
		most    int
	}{{false, 8}, {true, 2}} {
		const promptTokens = 16
		dec := enginetest.NewDecoder(48, 4096)
		dec.Next = enginetest.Reciter(promptTokens, "a short answer")
		most := 0
		dec.Before = func(b model.Batch) error {
			most = max(most, len(b))
			return slowly(b)
		}
		inBubble(t, engine.Config{NoPreemption: c.reserve, NoLookup: true}, dec, func(t *testing.T, e *engine.Engine) {
			run(t, e, long("x", 3))
			var streams []*engine.Stream
			for i := range 8 {
				r := request(strings.Repeat(string(rune('a'+i)), promptTokens), 300)
				streams = append(streams, submit(t, e, r))
			}
			for _, s := range streams {
				if a := readAll(t, s); a.text != "a short answer" || a.done.Reason != engine.ReasonStop {
					t.Errorf("%q (%s)", a.text, a.done.Reason)
				}
			}
			if st := e.Stats(); most != c.most || st.Preemptions != 0 {
				t.Errorf("%d at once, want %d, %d preemptions", most, c.most, st.Preemptions)
			}
		})
	}
}

// pausing runs two answers of which the second is away when f is called.
func pausing(t *testing.T, f func(t *testing.T, e *engine.Engine, first, second *engine.Stream, cancel context.CancelFunc)) {
	t.Helper()
	dec := enginetest.NewDecoder(12, 1024)
	dec.Before = slowly
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.New(dec, enginetest.Tokenizer{}, engine.Config{NoLookup: true})
		if err != nil {
			t.Fatal(err)
		}
		expectShort(t, e)
		first := submit(t, e, long("a", 170))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		second, err := e.Submit(ctx, long("b", 150))
		if err != nil {
			t.Fatal(err)
		}
		for e.Stats().Preemptions == 0 {
			time.Sleep(stepTime / 2)
		}
		time.Sleep(stepTime / 4)
		if st := e.Stats(); st.Running != 1 || st.Queued != 1 {
			t.Fatalf("%+v, want one that runs and one that is away", st)
		}
		f(t, e, first, second, cancel)
		if err := e.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
		if st := e.Stats(); st.BlocksUsed != 0 || st.Running != 0 || st.Queued != 0 {
			t.Errorf("after close: %+v", st)
		}
	})
}

// A caller leaves while its answer is away: it ends at once, with what was said.
func TestCancelWhilePreempted(t *testing.T) {
	for name, leave := range map[string]func(s *engine.Stream, cancel context.CancelFunc){
		"context ends":  func(_ *engine.Stream, cancel context.CancelFunc) { cancel() },
		"stream closed": func(s *engine.Stream, _ context.CancelFunc) { s.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			pausing(t, func(t *testing.T, e *engine.Engine, first, second *engine.Stream, cancel context.CancelFunc) {
				leave(second, cancel)
				left := time.Now()
				b := readAll(t, second)
				if b.done.Reason != engine.ReasonCancelled || len(b.tokens) < 70 || len(b.tokens) != b.done.Usage.OutputTokens || time.Since(left) > 0 {
					t.Errorf("%+v with %d tokens after %v", b.done, len(b.tokens), time.Since(left))
				}
				if b.done.Usage.Preemptions != 1 || b.done.Times.Preempted <= 0 {
					t.Errorf("%+v", b.done)
				}
				if a := readAll(t, first); a.done.Reason != engine.ReasonLength {
					t.Errorf("the other ended with %+v", a.done)
				}
				if st := e.Stats(); st.Cancelled != 1 || st.Queued != 0 || st.OutputTokens != int64(1+170+len(b.tokens)) {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// Close lets an answer that is away finish as it does those that run, and a step that
// fails does not reach it.
func TestCloseAndFailureWhilePreempted(t *testing.T) {
	t.Run("drains", func(t *testing.T) {
		pausing(t, func(t *testing.T, e *engine.Engine, first, second *engine.Stream, _ context.CancelFunc) {
			waiting := submit(t, e, request("not begun", 5))
			if err := e.Close(t.Context()); err != nil {
				t.Error(err)
			}
			for _, s := range []*engine.Stream{first, second} {
				if a := readAll(t, s); a.done.Reason != engine.ReasonLength {
					t.Errorf("%+v", a.done)
				}
			}
			if a := readAll(t, waiting); !errors.Is(a.failed.Err, engine.ErrClosed) {
				t.Errorf("%+v", a)
			}
		})
	})
	t.Run("cuts short", func(t *testing.T) {
		pausing(t, func(t *testing.T, e *engine.Engine, first, second *engine.Stream, _ context.CancelFunc) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*stepTime)
			defer cancel()
			if err := e.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("close: %v", err)
			}
			for _, s := range []*engine.Stream{first, second} {
				if a := readAll(t, s); a.done.Reason != engine.ReasonCancelled || len(a.tokens) == 0 {
					t.Errorf("%+v", a.done)
				}
			}
		})
	})
}

// A failing step ends what runs; the one that was away reads what it needs and goes on.
func TestBrokenStepWhilePreempted(t *testing.T) {
	var want answer
	inBubble(t, engine.Config{}, enginetest.NewDecoder(64, 1024), func(t *testing.T, e *engine.Engine) {
		want = run(t, e, long("b", 150))
	})
	broken := errors.New("device lost")
	dec := enginetest.NewDecoder(12, 1024)
	inBubble(t, engine.Config{NoLookup: true}, dec, func(t *testing.T, e *engine.Engine) {
		failed := false
		dec.Before = func(b model.Batch) error {
			if !failed && e.Stats().Preemptions > 0 {
				failed = true
				return broken
			}
			return slowly(b)
		}
		expectShort(t, e)
		first, second := submit(t, e, long("a", 170)), submit(t, e, long("b", 150))
		if a := readAll(t, first); !errors.Is(a.failed.Err, broken) {
			t.Errorf("%+v", a)
		}
		if b := readAll(t, second); !slices.Equal(b.tokens, want.tokens) || b.done.Usage.Preemptions != 1 {
			t.Errorf("%q, undisturbed %q, %+v", b.text, want.text, b.done)
		}
	})
}

// Callers of all kinds on a cache that is too small, for the race detector: everything
// ends, and forecasts are asked for meanwhile.
func TestManyCallersInASmallCache(t *testing.T) {
	e, err := engine.New(enginetest.NewDecoder(20, 512), enginetest.Tokenizer{}, engine.Config{MaxQueue: 400, PieceTokens: 16, StepTokens: 48})
	if err != nil {
		t.Fatal(err)
	}
	expectShort(t, e)
	const callers = 60
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			r := request(strings.Repeat("word ", 1+i%12), 2+i%2*200)
			r.Tenant = string(rune('a' + i%3))
			s, err := e.Submit(ctx, r)
			if err != nil {
				t.Errorf("submit: %v", err)
				return
			}
			if i%5 == 0 {
				time.AfterFunc(time.Duration(i)*time.Millisecond/4, s.Close)
			}
			e.FirstToken(50, 0, time.Time{})
			readAll(t, s)
			e.Stats()
		})
	}
	wg.Wait()
	if err := e.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
	st := e.Stats()
	if st.Completed+st.Cancelled != callers+1 || st.BlocksUsed != 0 || st.Preemptions == 0 {
		t.Errorf("%+v, want %d ended, some preempted, no block used", st, callers+1)
	}
}
