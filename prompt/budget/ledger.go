package budget

import (
	"fmt"

	"ragd/prompt"
)

// Ledger says where the tokens of a prompt went.
type Ledger struct {
	Template            int       `json:"template"`
	System              int       `json:"system"`
	History             int       `json:"history"`
	Tools               int       `json:"tools"`
	Question            int       `json:"question"`
	Evidence            []Item    `json:"evidence"`
	Dropped             []Dropped `json:"dropped"`
	HistoryTurnsDropped int       `json:"history_turns_dropped"`
	AnswerReserved      int       `json:"answer_reserved"`
	Window              int       `json:"window"`
	// Estimated: a server rendered the prompt and told its tokens alone; the
	// components are their estimated shares of it.
	Estimated bool `json:"estimated,omitempty"`
}

// Item is a presented chunk.
type Item struct {
	ChunkID int64 `json:"chunk_id"`
	Tokens  int   `json:"tokens"`
	// Joined are neighbours that the caller presents with it; their tokens are in
	// Tokens.
	Joined []int64 `json:"joined,omitempty"`
}

// Dropped is a candidate that was not presented.
type Dropped struct {
	ChunkID int64  `json:"chunk_id"`
	Tokens  int    `json:"tokens"`
	Reason  Reason `json:"reason"`
}

// Input is the number of tokens the engine is given.
func (l *Ledger) Input() int {
	n := l.Template + l.System + l.History + l.Tools + l.Question
	for _, e := range l.Evidence {
		n += e.Tokens
	}
	return n
}

// Scaled is the ledger of a prompt that took total tokens where the estimate was
// Input: each component has its share, rounded down, the template what is left.
func (l Ledger) Scaled(total int) Ledger {
	was := l.Input()
	if was == 0 {
		l.Template, l.Estimated = total, true
		return l
	}
	share := func(n int) int { return n * total / was }
	l.System, l.History, l.Tools, l.Question, l.Template = share(l.System), share(l.History), share(l.Tools), share(l.Question), 0
	items := make([]Item, len(l.Evidence))
	for i, e := range l.Evidence {
		items[i] = e
		items[i].Tokens = share(e.Tokens)
	}
	l.Evidence, l.Estimated = items, true
	l.Template = total - l.Input()
	return l
}

// Check holds the ledger to its invariants: input tokens given to the engine
// equal the sum, and with the reserve they fit the window.
func (l *Ledger) Check(inputTokens int) error {
	if n := l.Input(); n != inputTokens {
		return fmt.Errorf("ledger: components sum to %d tokens, the engine was given %d", n, inputTokens)
	}
	if n := inputTokens + l.AnswerReserved; n > l.Window {
		return &OverBudgetError{Need: n, Have: l.Window}
	}
	return nil
}

// Measured is the ledger of the rendered prompt: the plan's chunks and drops
// with the tokens that prompt.Tokenize counted. Evidence part i is the item
// that was presented i-th.
func (p *Plan) Measured(tokens map[prompt.Part]int) Ledger {
	l := p.Ledger
	l.Template, l.System, l.History, l.Tools, l.Question = 0, 0, 0, 0, 0
	l.Evidence = make([]Item, len(p.Kept))
	for i, k := range p.Kept {
		l.Evidence[i].ChunkID = k.ChunkID
	}
	for part, n := range tokens {
		switch part.Kind {
		case prompt.System:
			l.System += n
		case prompt.History:
			l.History += n
		case prompt.Tools:
			l.Tools += n
		case prompt.Question:
			l.Question += n
		case prompt.Evidence:
			if part.Index >= 0 && part.Index < len(l.Evidence) {
				l.Evidence[part.Index].Tokens += n
			}
		default:
			l.Template += n
		}
	}
	return l
}
