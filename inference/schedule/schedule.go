// Package schedule decides who takes part in the next step. It is pure: numbers
// in, numbers out.
//
// Admission reserves: a sequence starts only when the blocks for its prompt and
// its longest possible answer are free, so that a running answer is never
// stopped, swapped or computed again for lack of memory. The price is that
// blocks reserved for an answer that ends early stood idle.
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

// Admit is how many sequences of order may start, with so many running and so
// many blocks free. Need says how many free blocks a waiting sequence would take;
// it is asked once for each that is admitted and for the first that is not.
func Admit(order []int, running, free int, l Limits, need func(i int) int) int {
	for n, i := range order {
		if running+n >= l.Running {
			return n
		}
		if free -= need(i); free < 0 {
			return n
		}
	}
	return len(order)
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
