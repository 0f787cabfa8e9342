// Package schedule decides who takes part in the next step. It is pure: numbers
// in, numbers out.
//
// Admission goes by what a sequence needs now: blocks for the tokens that it has and
// for a bounded part of its answer, beyond one block for each that runs already and
// has not all it may come to need. Blocks for the rest are taken as the answer grows.
// When none is free then, a running sequence gives its blocks back and waits at the
// front of the queue (Victim). So a bound on the answer that is far above what answers
// come to keeps nobody waiting; what it costs is that an answer can pause. The first
// of those that run never does, and whoever runs alone has room for its longest
// answer, so the work always comes to an end.
//
// Waiting sequences are taken in the order of their arrival, but the tenant that
// was served the fewest tokens comes first (Fair). A sequence that does not fit
// holds up those behind it: passing it by would let short requests keep a long
// one out for ever.
package schedule

// Limits bound one step.
type Limits struct {
	// Running is the most sequences that run at once.
	Running int
	// StepTokens is the most token rows of a step. It is at least Running, so
	// that every decoding sequence has its row.
	StepTokens int
	// PieceTokens is the longest piece of one prompt in a step.
	PieceTokens int
	// PromptTokens is the most token rows of prompts in a step in which others
	// decode; 0 is no bound.
	PromptTokens int
}

// Need is what a waiting sequence needs to start.
type Need struct {
	Blocks int  // free blocks that it takes
	Grows  bool // whether it may come to need more
}

// Admit is how many sequences of order may start, with so many running and so
// many blocks free, of which keep stay free for those that run. The need is asked once
// for each that is admitted and for the first that is not.
func Admit(order []int, running, free, keep int, l Limits, need func(i int) Need) int {
	for n, i := range order {
		if running+n >= l.Running {
			return n
		}
		needed := need(i)
		if free -= needed.Blocks; free < keep {
			return n
		}
		if needed.Grows {
			keep++
		}
	}
	return len(order)
}

// Holder is a running sequence as Victim sees it.
type Holder struct {
	Promised bool    // whether it has a time for its first token to keep
	Served   float64 // of its tenant: Fair.Served
}

// Victim is which of the running sequences, in the order in which they started, is to
// give its blocks back: one that promised nothing before one that did, then of the
// tenant that was served the most, then the one that started last. The first is never
// chosen; without another it is -1.
func Victim(running []Holder) int {
	victim := -1
	for i := 1; i < len(running); i++ {
		if victim < 0 || running[i].waits(running[victim]) {
			victim = i
		}
	}
	return victim
}

// waits says whether a sequence is to wait before one that started earlier.
func (h Holder) waits(earlier Holder) bool {
	if h.Promised != earlier.Promised {
		return earlier.Promised
	}
	return h.Served >= earlier.Served
}

// Plan shares the rows of a step. Pending is, for each running sequence, how
// many of its tokens are not in the cache yet: one while it decodes, more while
// its prompt is prefilled. Plan appends to dst how many each may run now: first
// one for each that decodes, then pieces of prompts in the order given, as far
// as the rows go.
func Plan(dst []int, pending []int, l Limits) []int {
	rows := l.StepTokens
	start := len(dst)
	for _, p := range pending {
		n := 0
		if p == 1 {
			n = min(1, rows)
		}
		rows -= n
		dst = append(dst, n)
	}
	if rows < l.StepTokens && l.PromptTokens > 0 {
		rows = min(rows, l.PromptTokens)
	}
	for i, p := range pending {
		if p > 1 {
			n := min(p, l.PieceTokens, rows)
			rows -= n
			dst[start+i] = n
		}
	}
	return dst
}
