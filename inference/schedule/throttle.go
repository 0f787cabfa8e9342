package schedule

import "time"

// Throttle finds how many rows of prompts a step may have beside decoding ones so
// that running answers get their next token in time. It learns from the steps
// themselves and assumes no law for their cost: the first rows are nearly free
// where a step waits for memory, later ones are not. It grows carefully and shrinks
// at once. The zero value is ready.
type Throttle struct{ rows int }

const (
	// leastPrompt is how many rows there always are: a prompt gets on however slow
	// its rows are.
	leastPrompt = 8
	mostPrompt  = 1 << 16
	// gapSteps is the bound where none is given, in times of a step that only
	// decodes.
	gapSteps = 2.5
	// margin is the part of the bound that is aimed at; steps vary.
	margin = 0.85
	// growth is how much more a step may try than the one before it.
	growth = 1.25
)

// Rows is how many rows of prompts the next step may have.
func (t *Throttle) Rows() int { return max(t.rows, leastPrompt) }

// Learn takes a step into account that had rows of prompts beside decoding ones,
// given the time of a step that only decodes (0 while not known) and the longest
// gap (0: 2.5 such steps).
func (t *Throttle) Learn(rows int, took, decode, gap time.Duration) {
	if decode == 0 {
		return
	}
	if gap == 0 {
		gap = time.Duration(gapSteps * float64(decode))
	}
	room := margin*float64(gap) - float64(decode)
	cost := float64(took - decode)
	next := growth * float64(rows)
	if cost > 0 {
		next = min(next, room/cost*float64(rows))
	}
	// The last piece of a prompt may be short and says nothing about long ones.
	if rows >= t.Rows() || next < float64(t.rows) && cost > room {
		t.rows = int(min(max(next, leastPrompt), mostPrompt))
	}
}
