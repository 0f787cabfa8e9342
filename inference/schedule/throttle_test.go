package schedule

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const (
	decode = 10 * time.Millisecond
	row    = time.Millisecond
)

// Whatever a step costs, the rows settle where the bound is kept and used.
func TestThrottleSettles(t *testing.T) {
	linear := func(rows int) time.Duration { return decode + time.Duration(rows)*row }
	knee := func(rows int) time.Duration { return max(decode, time.Duration(rows)*row) }
	for _, c := range []struct {
		name        string
		cost        func(int) time.Duration
		gap         time.Duration
		least, most int
	}{
		{"a given bound", linear, 60 * time.Millisecond, 38, 41},
		{"2.5 decode steps", linear, 0, 10, 11},
		{"rows that are free at first", knee, 60 * time.Millisecond, 45, 60},
		{"a bound below a decode step still leaves a third of the time", linear, time.Millisecond, 2, 3},
		{"rows that cost nothing", func(int) time.Duration { return decode }, 0, mostPrompt, mostPrompt},
		{"a row that costs too much", func(rows int) time.Duration { return decode + time.Duration(rows)*time.Second }, 0, 1, 1},
	} {
		l := NewThrottle(4, 1, 0)
		step := func() { learn(&l, l.Rows(0), c.cost(l.Rows(0))-decode, Bound(decode, c.gap)) }
		for range 100 {
			step()
		}
		for range 20 {
			step()
			if got := l.Rows(0); got < c.least || got > c.most {
				t.Fatalf("%s: %d rows, want %d to %d", c.name, got, c.least, c.most)
			}
		}
	}
}

// learn tells of a step with all the rows that were allowed, at the start of a prompt.
func learn(l *Throttle, rows int, cost, bound time.Duration) {
	l.Learn(Ran{Weight: float64(rows), Full: true, Took: decode + cost, Base: decode, Bound: bound})
}

// Rows deeper in a prompt cost more, and the bound is kept from the first piece of
// a deep prompt that follows a shallow one.
func TestThrottleKnowsDepth(t *testing.T) {
	const deep = 700
	l := NewThrottle(4, 1, deep)
	cost := func(rows, depth int) time.Duration {
		return time.Duration(float64(rows) * (1 + float64(depth)/deep) * float64(row))
	}
	bound := 50 * time.Millisecond
	room := time.Duration((margin*float64(bound) - float64(decode)) / margin)
	for range 100 {
		learn(&l, l.Rows(0), cost(l.Rows(0), 0), bound)
	}
	for _, depth := range []int{0, 700, 4000, 100_000} {
		rows := l.Rows(depth)
		if took := cost(rows, depth); took > bound-decode && rows > 1 {
			t.Errorf("%d rows at depth %d take %v, there is time for %v", rows, depth, took, bound-decode)
		}
		if more := cost(rows+2, depth); more < room*3/4 {
			t.Errorf("%d rows at depth %d, two more would take %v of %v", rows, depth, more, room)
		}
	}
	// One row that costs more than there is time for is run all the same, and what it
	// taught does not hold shallow rows down for long.
	for range 50 {
		l.Learn(Ran{Weight: l.Weight(1_000_000), Full: true, Took: decode + cost(1, 1_000_000), Base: decode, Bound: bound})
	}
	for range 20 {
		learn(&l, l.Rows(0), cost(l.Rows(0), 0), bound)
	}
	if rows := l.Rows(0); cost(rows, 0) < room*3/4 {
		t.Errorf("%d rows, too few for %v", rows, room)
	}
}

func TestThrottleIgnoresWhatSaysNothing(t *testing.T) {
	l := NewThrottle(4, 1, 0)
	const bound = 100 * time.Millisecond
	for range 30 {
		learn(&l, l.Rows(0), time.Duration(l.Rows(0))*row, bound)
	}
	settled := l.Rows(0)
	if l.Learn(Ran{Weight: 3, Took: decode + 3*row, Base: decode, Bound: bound}); l.Rows(0) != settled {
		t.Errorf("a short last piece moved %d rows to %d", settled, l.Rows(0))
	}
	if l.Learn(Ran{Weight: float64(settled / 2), Took: time.Second, Base: decode, Bound: bound}); l.Rows(0) >= settled/2 {
		t.Errorf("%d rows after a step of %d that took a second", l.Rows(0), settled/2)
	}
}

func TestThrottleIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		least := rapid.IntRange(1, 64).Draw(t, "least")
		l := NewThrottle(rapid.IntRange(1, 64).Draw(t, "first"), least, rapid.Float64Range(0, 1e6).Draw(t, "deep"))
		duration := rapid.Int64Range(-int64(time.Hour), int64(time.Hour))
		for range 20 {
			before := l.Rows(0)
			l.Learn(Ran{
				Weight: rapid.Float64Range(0, float64(before)).Draw(t, "weight"), Full: rapid.Bool().Draw(t, "full"),
				Took:  time.Duration(duration.Draw(t, "took")),
				Base:  time.Duration(duration.Draw(t, "base")),
				Bound: time.Duration(duration.Draw(t, "bound")),
			})
			got := l.Rows(0)
			if got < least || got > mostPrompt || got > least && float64(got) > math.Ceil(growth*float64(before+1)) {
				t.Fatalf("%d rows after %d", got, before)
			}
		}
	})
}
