package budget

import "slices"

// Kept is a candidate that is presented.
type Kept struct {
	Index     int // in Input.Candidates
	ChunkID   int64
	Tokens    int
	Sentences bool // the shorter form
}

// Cut tells the caller that nothing fits whole: the best candidate may be cut
// at a sentence to Room tokens and packed again. Until then it stands among
// the dropped.
type Cut struct {
	Index   int
	ChunkID int64
	Room    int
}

// Plan is a packed prompt.
type Plan struct {
	Kept    []Kept    // in the order of the prompt
	Dropped []Dropped // in the order of the candidates
	// TurnsDropped is how many of the oldest turns are left out.
	TurnsDropped int
	// Truncate is set when no candidate fits and one that was not refused
	// earlier could be cut.
	Truncate *Cut
	// Ledger is what the prompt will cost by these counts.
	Ledger Ledger
}

// Pack chooses turns and evidence. Every candidate is either kept or dropped
// with one reason, and the ledger's input and reserve fit the window.
// It fails with an *OverBudgetError when the fixed parts alone do not fit and
// with an *InputError for a count that is none.
func Pack(in Input) (*Plan, error) {
	if err := in.check(); err != nil {
		return nil, err
	}
	p := newPacker(&in)
	first := p.turns(len(in.History), p.room()/2)
	p.evidence()
	cut := p.cut()
	if cut == nil { // else the room that is left is the evidence's
		first = p.turns(first, p.room())
	}
	return p.plan(first, cut), nil
}

// packer is the state of one packing: what is taken so far.
type packer struct {
	in                *Input
	window, ttft      int // room for history and evidence by each limit
	history, template int // tokens of kept turns; template of turns and items
	items             int // tokens of kept evidence
	kept              []Kept
	reasons           []Reason
}

func newPacker(in *Input) *packer {
	p := &packer{in: in, reasons: make([]Reason, len(in.Candidates))}
	p.window = in.Limits.Window - in.Limits.AnswerTokens - in.Fixed.sum()
	p.ttft = p.window
	if in.Limits.TTFTTokens > 0 {
		p.ttft = min(p.window, max(0, in.Limits.TTFTTokens-in.Fixed.sum()))
	}
	return p
}

func (p *packer) used() int { return p.history + p.template + p.items }

func (p *packer) room() int { return p.ttft - p.used() }

// turns takes turns before turn end, newest first, while they fit in limit
// tokens, and returns the first that is in.
func (p *packer) turns(end, limit int) int {
	for end > 0 {
		t := p.in.History[end-1]
		if limit -= t.Tokens + t.Template; limit < 0 {
			break
		}
		p.history += t.Tokens
		p.template += t.Template
		end--
	}
	return end
}

// evidence takes candidates in the form that Detail asks for.
func (p *packer) evidence() {
	before := *p
	switch p.in.Detail {
	case Chunks:
		p.take(wholeOf)
	case Sentences:
		p.take(shortOf)
	default:
		if p.take(wholeOf) {
			return
		}
		*p = before
		p.take(shortOf)
	}
}

func wholeOf(c Candidate) (tokens int, sentences bool) { return c.Tokens, false }

func shortOf(c Candidate) (tokens int, sentences bool) {
	if c.Sentences > 0 && c.Sentences < c.Tokens {
		return c.Sentences, true
	}
	return c.Tokens, false
}

// take keeps candidates in one form and reports whether none was too long.
func (p *packer) take(form func(Candidate) (int, bool)) (allFit bool) {
	allFit = true
	for i, c := range p.in.Candidates {
		tokens, sentences := form(c)
		if p.reasons[i] = p.refuse(c, tokens); p.reasons[i] != "" {
			allFit = allFit && !tooLong(c, p.reasons[i])
			continue
		}
		p.template += p.itemTemplate()
		p.items += tokens
		p.kept = append(p.kept, Kept{Index: i, ChunkID: c.ChunkID, Tokens: tokens, Sentences: sentences})
	}
	return allFit
}

// tooLong says whether a candidate was refused here for its length.
func tooLong(c Candidate, r Reason) bool {
	return c.Drop == "" && (r == OverBudget || r == OverTTFT)
}

// itemTemplate is the wording around the next item.
func (p *packer) itemTemplate() int {
	if p.in.ItemTemplate == nil {
		return 0
	}
	return min(max(0, p.in.ItemTemplate(len(p.kept)+1)), maxTokens)
}

// refuse gives the reason why a candidate cannot be taken, "" if it can.
func (p *packer) refuse(c Candidate, tokens int) Reason {
	l := p.in.Limits
	cost := tokens + p.itemTemplate()
	switch {
	case c.Drop != "":
		return c.Drop
	case l.MaxChunks > 0 && len(p.kept) >= l.MaxChunks:
		return MaxChunks
	case l.ContextTokens > 0 && p.items+tokens > l.ContextTokens, p.used()+cost > p.window:
		return OverBudget
	case p.used()+cost > p.ttft:
		return OverTTFT
	}
	return ""
}

func (p *packer) plan(firstTurn int, cut *Cut) *Plan {
	in := p.in
	plan := &Plan{Kept: p.kept, Dropped: []Dropped{}, TurnsDropped: firstTurn, Truncate: cut}
	if in.Order == BestLast {
		slices.Reverse(plan.Kept)
	}
	for i, c := range in.Candidates {
		if p.reasons[i] != "" {
			plan.Dropped = append(plan.Dropped, Dropped{ChunkID: c.ChunkID, Tokens: c.Tokens, Reason: p.reasons[i]})
		}
	}
	plan.Ledger = Ledger{
		Template: in.Fixed.Template + p.template, System: in.Fixed.System, History: p.history,
		Tools: in.Fixed.Tools, Question: in.Fixed.Question,
		Evidence: make([]Item, len(plan.Kept)), Dropped: plan.Dropped,
		HistoryTurnsDropped: firstTurn, AnswerReserved: in.Limits.AnswerTokens, Window: in.Limits.Window,
	}
	for i, k := range plan.Kept {
		plan.Ledger.Evidence[i] = Item{ChunkID: k.ChunkID, Tokens: k.Tokens}
	}
	return plan
}

// cut offers the best candidate for cutting when nothing was kept.
func (p *packer) cut() *Cut {
	if len(p.kept) > 0 {
		return nil
	}
	room := p.ttft - p.used() - p.itemTemplate()
	if c := p.in.Limits.ContextTokens; c > 0 {
		room = min(room, c)
	}
	for i, c := range p.in.Candidates {
		if room > 0 && tooLong(c, p.reasons[i]) {
			return &Cut{Index: i, ChunkID: c.ChunkID, Room: room}
		}
	}
	return nil
}
