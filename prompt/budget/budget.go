package budget

import "fmt"

// Reason says why a candidate was not presented.
type Reason string

// The reasons, one for every dropped candidate.
const (
	Duplicate      Reason = "duplicate"
	BelowThreshold Reason = "below_threshold"
	OverBudget     Reason = "over_budget"
	OverTTFT       Reason = "over_ttft"
	MaxChunks      Reason = "max_chunks"
	Filtered       Reason = "filtered"
)

// valid reports whether r is a reason, or none.
func (r Reason) valid() bool {
	switch r {
	case "", Duplicate, BelowThreshold, OverBudget, OverTTFT, MaxChunks, Filtered:
		return true
	}
	return false
}

// Detail says how much of each chunk to present.
type Detail uint8

const (
	// Auto presents whole chunks when all that MaxChunks allows fit whole, else
	// sentences.
	Auto Detail = iota
	// Chunks presents whole chunks only.
	Chunks
	// Sentences presents the sentences of each chunk that has some chosen.
	Sentences
)

// Order is the order of the evidence in the prompt.
type Order uint8

const (
	// BestLast puts the best evidence next to the question, where models read
	// best (arXiv 2407.01219).
	BestLast Order = iota
	// BestFirst keeps the order of the candidates.
	BestFirst
)

// Fixed is what the prompt costs before history and evidence, in tokens.
type Fixed struct{ Template, System, Tools, Question int }

func (f Fixed) sum() int { return f.Template + f.System + f.Tools + f.Question }

// Turn is one whole turn of the history, a question with its answer.
type Turn struct {
	Tokens   int // of its messages
	Template int // of the scaffold around them
}

// Candidate is a chunk that may be presented.
type Candidate struct {
	ChunkID int64
	// Tokens is the cost of the whole chunk as it will be rendered.
	Tokens int
	// Sentences is the cost of its chosen sentences; 0 when there is no such
	// shorter form.
	Sentences int
	// Drop is set by an earlier stage that refused the candidate.
	Drop Reason
}

// Limits bound the prompt, in tokens. 0 means no limit, except for Window.
type Limits struct {
	Window        int // of the model
	AnswerTokens  int // reserved for the answer
	ContextTokens int // evidence
	TTFTTokens    int // whole input that can be prefilled in the time asked for
	MaxChunks     int
}

// Input is one packing problem.
type Input struct {
	Fixed      Fixed
	History    []Turn      // oldest first
	Candidates []Candidate // best first
	// ItemTemplate is the template's share of presenting item n (from 1), the
	// wording around its marker; nil means none. All of it must be what is
	// rendered, or more.
	ItemTemplate func(n int) int
	Limits       Limits
	Detail       Detail
	Order        Order
}

// maxTokens bounds every count, so that sums cannot overflow.
const maxTokens = 1 << 30

// InputError names a value that no packing can be made from.
type InputError struct{ Name, Problem string }

func (e *InputError) Error() string { return "budget: " + e.Name + " " + e.Problem }

// OverBudgetError says that what cannot be cut does not fit the window.
type OverBudgetError struct {
	Need int // template, system, tools, question and the answer's reserve
	Have int // the window
}

func (e *OverBudgetError) Error() string {
	return fmt.Sprintf("question, system message and template with the tokens reserved for the answer need %d tokens, the window has %d: %d too many",
		e.Need, e.Have, e.Need-e.Have)
}

func (in *Input) check() error {
	l, f := in.Limits, in.Fixed
	var bad error
	count := func(n int, format string, args ...any) {
		if bad == nil && (n < 0 || n > maxTokens) {
			bad = &InputError{fmt.Sprintf(format, args...), fmt.Sprintf("is %d, must be between 0 and %d", n, maxTokens)}
		}
	}
	count(l.Window, "window")
	count(l.AnswerTokens, "answer_tokens")
	count(l.ContextTokens, "context_tokens")
	count(l.TTFTTokens, "ttft tokens")
	count(l.MaxChunks, "max_chunks")
	count(f.Template, "template tokens")
	count(f.System, "system tokens")
	count(f.Tools, "tools tokens")
	count(f.Question, "question tokens")
	for i, t := range in.History {
		count(t.Tokens, "history turn %d tokens", i)
		count(t.Template, "history turn %d template tokens", i)
	}
	for i, c := range in.Candidates {
		count(c.Tokens, "candidate %d tokens", i)
		count(c.Sentences, "candidate %d sentence tokens", i)
		if bad == nil && !c.Drop.valid() {
			bad = &InputError{fmt.Sprintf("candidate %d drop reason", i), fmt.Sprintf("is %q, which is none", c.Drop)}
		}
	}
	if need := f.sum() + l.AnswerTokens; bad == nil && need > l.Window {
		return &OverBudgetError{Need: need, Have: l.Window}
	}
	return bad
}
