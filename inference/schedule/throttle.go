package schedule

import "time"

// Throttle finds how many rows of prompts a step may have so that it keeps its
// time. It learns from the steps themselves: the first rows are nearly free where a
// step waits for memory, later ones are not. All it assumes is that a row costs the
// more the more positions lie before it. It grows carefully and shrinks at once.
type Throttle struct {
	// least is how many rows there always are, so that prompts get on however slow
	// they are.
	least int
	// deep is the depth at which a row costs twice what it costs at the start of a
	// prompt; 0 when depth costs nothing.
	deep float64
	rows float64 // at the start of a prompt
}

const (
	mostPrompt = 1 << 16
	// gapSteps is the longest gap where none is given, in times of a step that only
	// decodes. leastGap is the shortest that is aimed at: prompts get a third of the
	// time, whatever is asked.
	gapSteps, leastGap = 2.5, 1.5
	// roundUp is added before rows are cut to a whole number: half a row less or more is
	// much where there are one or two, and the margin has room for it.
	roundUp = 0.25
	// growth is how much more a step may try than the one before it.
	growth = 1.25
	// margin is the part of the bound that is aimed at; steps vary.
	margin = 0.85
)

// NewThrottle begins with first rows and never gives fewer than least.
func NewThrottle(first, least int, deep float64) Throttle {
	return Throttle{least: least, deep: deep, rows: float64(first)}
}

// Rows is how many rows of prompts the next step may have with depth positions
// before them.
func (t *Throttle) Rows(depth int) int {
	return max(t.least, int(t.rows/t.Weight(depth)+roundUp))
}

// Weight is what a row at a depth costs, in rows at the start of a prompt.
func (t *Throttle) Weight(depth int) float64 {
	if t.deep <= 0 {
		return 1
	}
	return 1 + float64(depth)/t.deep
}

// Ran is a step whose rows of prompts a throttle chose.
type Ran struct {
	Weight float64 // of these rows, summed
	Full   bool    // whether they are all that Rows allowed
	// Took is how long the step took, Base how long it takes without prompts, and Bound
	// how long it may take.
	Took, Base, Bound time.Duration
}

// Learn takes a step into account.
func (t *Throttle) Learn(r Ran) {
	if r.Weight <= 0 {
		return
	}
	next := growth * max(r.Weight, t.rows)
	if cost := r.Took - r.Base; cost > 0 {
		room := margin*float64(r.Bound) - float64(r.Base)
		next = min(next, max(0, room/float64(cost)*r.Weight))
	}
	// A short piece, the last one of a prompt, says nothing about long ones unless it
	// took too long already.
	if r.Full || next < t.rows && r.Took > r.Bound {
		// The bounds keep what a slow or free step taught from being lost on later ones.
		t.rows = min(max(next, float64(t.least)/2), mostPrompt)
	}
}

// Bound is the longest gap between two tokens of a running answer, given the time of
// a step that only decodes and the gap that was asked for (0: 2.5 such steps).
func Bound(decode, gap time.Duration) time.Duration {
	if gap == 0 {
		gap = time.Duration(gapSteps * float64(decode))
	}
	return max(gap, time.Duration(leastGap*float64(decode)))
}
