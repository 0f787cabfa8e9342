package schedule

import (
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
		{"a bound that cannot be kept", linear, time.Millisecond, leastPrompt, leastPrompt},
		{"rows that cost nothing", func(int) time.Duration { return decode }, 0, mostPrompt, mostPrompt},
	} {
		var l Throttle
		for range 100 {
			l.Learn(l.Rows(), c.cost(l.Rows()), decode, c.gap)
		}
		for range 20 {
			l.Learn(l.Rows(), c.cost(l.Rows()), decode, c.gap)
			if got := l.Rows(); got < c.least || got > c.most {
				t.Fatalf("%s: %d rows, want %d to %d", c.name, got, c.least, c.most)
			}
		}
	}
}

func TestThrottleIgnoresWhatSaysNothing(t *testing.T) {
	var l Throttle
	l.Learn(leastPrompt, decode, 0, 0)
	if got := l.Rows(); got != leastPrompt {
		t.Errorf("%d rows while a decode step was not measured, want %d", got, leastPrompt)
	}
	for range 20 {
		l.Learn(l.Rows(), decode+time.Duration(l.Rows())*row, decode, 100*time.Millisecond)
	}
	settled := l.Rows()
	if l.Learn(3, decode+3*row, decode, 100*time.Millisecond); l.Rows() != settled {
		t.Errorf("a short last piece moved %d rows to %d", settled, l.Rows())
	}
	if l.Learn(settled/2, time.Second, decode, 100*time.Millisecond); l.Rows() >= settled/2 {
		t.Errorf("%d rows after a step of %d that took a second", l.Rows(), settled/2)
	}
}

func TestThrottleIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var l Throttle
		duration := rapid.Int64Range(0, int64(time.Hour))
		for range 20 {
			before := l.Rows()
			l.Learn(rapid.IntRange(1, before).Draw(t, "rows"), time.Duration(duration.Draw(t, "took")), time.Duration(duration.Draw(t, "decode")), time.Duration(duration.Draw(t, "gap")))
			if got := l.Rows(); got < leastPrompt || got > mostPrompt || float64(got) > growth*float64(before) {
				t.Fatalf("%d rows after %d", got, before)
			}
		}
	})
}
