package engine_test

import (
	"context"
	"errors"
	"math"
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

// What runs during a broken step fails; what waits and what comes later does
// not notice.
func TestBrokenStep(t *testing.T) {
	broken := errors.New("device lost")
	for name, c := range map[string]struct {
		breakIt func() error
		check   func(error) bool
	}{
		"error": {func() error { return broken }, func(err error) bool { return errors.Is(err, broken) }},
		"panic": {func() error { panic("index out of range") }, func(err error) bool {
			var p *engine.PanicError
			return errors.As(err, &p) && p.Value == "index out of range" && len(p.Stack) > 0
		}},
	} {
		t.Run(name, func(t *testing.T) {
			dec := enginetest.NewDecoder(64, 256)
			steps := 0
			dec.Before = func(b model.Batch) error {
				if steps++; steps == 5 {
					return c.breakIt()
				}
				return slowly(b)
			}
			inBubble(t, engine.Config{MaxRunning: 2}, dec, func(t *testing.T, e *engine.Engine) {
				hit := []*engine.Stream{submit(t, e, request("one", 50)), submit(t, e, request("two", 50))}
				waits := submit(t, e, request("three", 5))
				for _, s := range hit {
					a := readAll(t, s)
					if !c.check(a.failed.Err) {
						t.Errorf("failed with %v", a.failed.Err)
					}
					if a.failed.Usage.OutputTokens != len(a.tokens) || a.failed.Times.FirstToken.IsZero() {
						t.Errorf("%+v for %d tokens read", a.failed, len(a.tokens))
					}
				}
				if a := readAll(t, waits); a.done.Reason != engine.ReasonLength {
					t.Errorf("the waiting request: %+v", a)
				}
				if st := e.Stats(); st.Failed != 2 || st.Completed != 1 || st.BlocksUsed != 0 {
					t.Errorf("%+v, want 2 failed, 1 completed, no block used", st)
				}
			})
		})
	}
}

func TestWrongNumberOfRows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.New(rowless{enginetest.NewDecoder(16, 256)}, enginetest.Tokenizer{}, engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close(t.Context())
		a := run(t, e, request("q", 5))
		if a.failed.Err == nil || !strings.Contains(a.failed.Err.Error(), "0 rows of logits, want 1") {
			t.Errorf("failed with %v", a.failed.Err)
		}
	})
}

// rowless is a decoder that forgets the logits.
type rowless struct{ *enginetest.Decoder }

func (rowless) Forward(model.Batch) ([][]float32, error) { return nil, nil }

// Logits that cannot be drawn from end their own answer only.
func TestBrokenLogitsFailOneRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dec := &poisoner{Decoder: enginetest.NewDecoder(16, 256)}
		e, err := engine.New(dec, enginetest.Tokenizer{}, engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close(t.Context())
		first, second := submit(t, e, request("first", 10)), submit(t, e, request("second", 10))
		if a := readAll(t, first); !errors.Is(a.failed.Err, sample.ErrNotFinite) {
			t.Errorf("first: %+v, want ErrNotFinite", a)
		}
		if a := readAll(t, second); a.done.Reason != engine.ReasonLength || len(a.tokens) != 10 {
			t.Errorf("second: %+v, want all 10 tokens", a)
		}
		if st := e.Stats(); st.Failed != 1 || st.Completed != 1 || st.BlocksUsed != 0 {
			t.Errorf("%+v, want 1 failed, 1 completed, no block used", st)
		}
	})
}

// poisoner is a decoder with a NaN in the first row of its fifth step.
type poisoner struct {
	*enginetest.Decoder
	steps int
}

func (p *poisoner) Forward(b model.Batch) ([][]float32, error) {
	time.Sleep(stepTime)
	rows, err := p.Decoder.Forward(b)
	if p.steps++; p.steps == 5 {
		rows[0][42] = float32(math.NaN())
	}
	return rows, err
}

func TestCloseDrains(t *testing.T) {
	dec := enginetest.NewDecoder(64, 256)
	dec.Before = slowly
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.New(dec, enginetest.Tokenizer{}, engine.Config{MaxRunning: 1})
		if err != nil {
			t.Fatal(err)
		}
		running := submit(t, e, request("running", 20))
		synctest.Wait()
		waiting := submit(t, e, request("waiting", 20))
		if err := e.Close(t.Context()); err != nil {
			t.Errorf("close: %v", err)
		}
		if a := readAll(t, running); a.done.Reason != engine.ReasonLength || len(a.tokens) != 20 {
			t.Errorf("the running answer ended with %+v", a.done)
		}
		if a := readAll(t, waiting); !errors.Is(a.failed.Err, engine.ErrClosed) {
			t.Errorf("the waiting request ended with %+v, want ErrClosed", a)
		}
		if _, err := e.Submit(t.Context(), request("late", 1)); !errors.Is(err, engine.ErrClosed) {
			t.Errorf("submit after close: %v", err)
		}
		if err := e.Close(t.Context()); err != nil || dec.Closed != 1 {
			t.Errorf("second close: %v, decoder closed %d times", err, dec.Closed)
		}
	})
}

func TestCloseCutsShort(t *testing.T) {
	dec := enginetest.NewDecoder(64, 256)
	dec.Before = slowly
	synctest.Test(t, func(t *testing.T) {
		e, err := engine.New(dec, enginetest.Tokenizer{}, engine.Config{})
		if err != nil {
			t.Fatal(err)
		}
		s := submit(t, e, request("running", 200))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 5*stepTime+stepTime/2)
		defer cancel()
		began := time.Now()
		if err := e.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close: %v, want the end of its context", err)
		}
		if took := time.Since(began); took != 6*stepTime {
			t.Errorf("close took %v, want %v", took, 6*stepTime)
		}
		if a := readAll(t, s); a.done.Reason != engine.ReasonCancelled || len(a.tokens) != 6 {
			t.Errorf("the answer ended with %+v", a.done)
		}
	})
}

// Many callers at once, some of whom leave: everything ends and adds up. It is
// there for the race detector.
func TestManyCallers(t *testing.T) {
	e, err := engine.New(enginetest.NewDecoder(64, 256), enginetest.Tokenizer{}, engine.Config{MaxQueue: 200, PieceTokens: 16, StepTokens: 48})
	if err != nil {
		t.Fatal(err)
	}
	const callers = 40
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			s, err := e.Submit(ctx, request(strings.Repeat("word ", 1+i%20), 20))
			if err != nil {
				t.Errorf("submit: %v", err)
				return
			}
			switch i % 4 {
			case 0:
				cancel()
			case 1:
				s.Close()
			}
			readAll(t, s)
			e.Stats()
		})
	}
	wg.Wait()
	st := e.Stats()
	if st.Completed+st.Cancelled != callers || st.Completed < callers/2 || st.BlocksUsed != 0 {
		t.Errorf("%+v, want %d ended and no block used", st, callers)
	}
	if err := e.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
}
