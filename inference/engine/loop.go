package engine

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"ragd/inference/kvcache"
	"ragd/inference/model"
	"ragd/inference/schedule"
)

// loop is the state that belongs to the goroutine of run alone.
type loop struct {
	pool    *kvcache.Pool
	running []*sequence // in the order in which they first started
	started int         // how many have

	// beside bounds prompts in steps where others decode, alone all other steps.
	beside, alone schedule.Throttle
	allowed       schedule.Limits // of the step underway
	hurried       int             // and for how many of running it is in a hurry, see schedule.Outlook.Hurried
	mixed         int             // steps that had both since one that only decoded
	measured      bool            // whether the step underway leaves prompts out

	// Kept from step to step so that a step allocates nothing.
	pending   []int
	rows      []int
	batch     model.Batch
	parts     []part
	drawn     []row
	choices   []model.Choice
	penalised []int32

	fetch   func(number int) ([]float32, error) // fetchRow
	fetched int64                               // rows it fetched
}

// part is the share of one sequence in a step.
type part struct {
	*sequence
	rows    int // tokens that are certain
	logits  int // rows of logits: with some, one for each drafted token besides
	drafted int // tokens that are guessed
	best    int // of the largest logits a draw wants, where a decoder tells them; 0: all
}

// run is the loop. It ends when Close was called and nothing runs any more.
func (e *Engine) run() {
	defer close(e.done)
	for {
		over := e.settle()
		if len(e.loop.running) > 0 {
			e.step()
			// Where all processors compute, a reader woken for a token would wait until one
			// of them is taken away, up to 20 ms and several tokens later.
			runtime.Gosched()
			continue
		}
		if over {
			break
		}
		<-e.wake
	}
	e.closed = e.dec.Close()
}

// settle brings the queue and the running sequences up to date between steps.
// It reports whether the engine is closing.
func (e *Engine) settle() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, s := range e.loop.running {
		if s.feed.Cancelled() || e.phase == stopping {
			e.stats.Cancelled++
			e.end(s, "", s.outcome(ReasonCancelled))
		}
	}
	e.compact()
	if e.phase != open {
		e.turnAway()
	}
	e.grow()
	e.admit()
	e.measure()
	return e.phase != open
}

// turnAway empties the queue of a closing engine: answers that had begun are cut short
// only where those that run are, too.
func (e *Engine) turnAway() {
	e.waiting = slices.DeleteFunc(e.waiting, func(s *sequence) bool {
		switch {
		case s.started == 0:
			e.stats.Failed++
			s.feed.Finish("", s.failure(ErrClosed))
		case e.phase == stopping:
			e.stats.Cancelled++
			e.account(s)
			s.feed.Finish("", s.outcome(ReasonCancelled))
		default:
			return false
		}
		return true
	})
}

// admit starts what may start and tells the others their place.
func (e *Engine) admit() {
	if len(e.waiting) == 0 {
		return
	}
	order := e.order()
	pool := e.loop.pool
	n := schedule.Admit(order, len(e.loop.running), pool.Free(), e.loop.growing(), e.limits, func(i int) schedule.Need {
		s := e.waiting[i]
		room := e.room(s)
		return schedule.Need{Blocks: pool.Need(s.tokens, room, s.tenant), Grows: s.grows(room)}
	})
	for _, i := range order[:n] {
		e.start(e.waiting[i])
	}
	e.tellPlaces(order[n:])
	e.waiting = slices.DeleteFunc(e.waiting, func(s *sequence) bool { return s.table != nil })
}

// tellPlaces tells those who wait their place. One that has started before has none:
// its reader sees an answer that pauses.
func (e *Engine) tellPlaces(order []int) {
	for place, i := range order {
		if s := e.waiting[i]; s.started == 0 {
			s.feed.Queued(place + 1)
		}
	}
}

// order is the order in which those who wait are to start: first those that were
// preempted, which their tenants were charged for, as they started. The caller holds
// the lock.
func (e *Engine) order() []int {
	first := e.preempted()
	waiting := make([]schedule.Waiting, 0, len(e.waiting)-first)
	for _, s := range e.waiting[first:] {
		waiting = append(waiting, schedule.Waiting{Tenant: s.tenant, Tokens: s.prompt + s.maxTokens})
	}
	order := make([]int, 0, len(e.waiting))
	for i := range first {
		order = append(order, i)
	}
	for _, i := range e.fair.Order(waiting) {
		order = append(order, first+i)
	}
	return order
}

// start reserves the blocks that Admit found free.
func (e *Engine) start(s *sequence) {
	table, ok := e.loop.pool.Reserve(s.tokens, e.room(s), s.tenant)
	if !ok {
		return // It stays in the queue. Need is an upper bound, so this is not expected.
	}
	s.table, s.done, s.target = table, table.Cached(), len(s.tokens)
	if s.started > 0 {
		e.resume(s)
		return
	}
	e.loop.started++
	s.started, s.cached = e.loop.started, s.done
	s.times.Scheduled = time.Now()
	s.feed.Scheduled(Scheduled{At: s.times.Scheduled, CachedTokens: s.done})
	e.loop.running = append(e.loop.running, s)
	e.stats.InputTokens += int64(s.prompt)
	e.stats.CachedTokens += int64(s.done)
	// Tokens that were cached cost nothing; those of the answer that do not come are
	// given back at its end.
	e.fair.Start(s.tenant, s.prompt-s.done+s.maxTokens)
}

// end gives the blocks of a running sequence back and then lets its reader
// know, so that whoever has read the last event finds them free. The caller
// holds the lock.
func (e *Engine) end(s *sequence, rest string, last Event) {
	e.account(s)
	e.loop.pool.Release(s.table)
	s.ended = true
	e.measure()
	s.feed.Finish(rest, last)
}

// account books an answer that ends, once. The caller holds the lock.
func (e *Engine) account(s *sequence) {
	s.returned()
	e.stats.OutputTokens += int64(s.drawn())
	e.outlook.ended(s.drawn(), s.accepted)
	e.stats.DraftedTokens += int64(s.drafted)
	e.stats.AcceptedTokens += int64(s.accepted)
	e.stats.RecomputedTokens += int64(s.recomputed)
	e.fair.Return(s.tenant, s.left()+max(0, s.prompt-max(s.done, s.reached)))
}

// compact forgets the sequences that ended or were preempted.
func (e *Engine) compact() {
	e.loop.running = slices.DeleteFunc(e.loop.running, func(s *sequence) bool { return s.ended || s.table == nil })
}

// step runs one batch. An error fails what was running and nothing else: those
// requests cannot go on, since part of their keys and values may be missing.
func (e *Engine) step() {
	if err := e.guarded(); err != nil {
		e.mu.Lock()
		defer e.mu.Unlock()
		for _, s := range e.loop.running {
			if !s.ended {
				e.stats.Failed++
				e.end(s, "", s.failure(err))
			}
		}
		if e.mover != nil {
			// A copy of a block may be what failed, so that prefixes are not what the
			// index says.
			e.loop.pool.Clear()
			e.measure()
		}
	}
}

// guarded turns a panic in a step into an error. A fault in a kernel, a grammar
// or a tokenizer that one prompt sets off would otherwise end the whole service
// and every other request with it. It is the only recover of the engine; the
// bookkeeping between steps is outside of it.
func (e *Engine) guarded() (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return e.forward()
}

func (e *Engine) forward() error {
	want := e.compose()
	began := time.Now()
	rows, err := e.watched()
	if err != nil {
		return fmt.Errorf("decoder: %w", err)
	}
	if len(rows) != want {
		return fmt.Errorf("decoder: %d rows of logits, want %d", len(rows), want)
	}
	took := time.Since(began)
	e.note(took)
	e.charge(took)
	for _, p := range e.loop.parts {
		e.advance(p, rows[:p.logits])
		rows = rows[p.logits:]
	}
	return nil
}

// compose makes the batch of the next step and says how many rows of logits it
// asks for.
func (e *Engine) compose() (logits int) {
	l := &e.loop
	l.pending = l.pending[:0]
	l.hurried = e.hurries()
	depth, decoding := 0, 0
	for i, s := range l.running {
		pending := s.pending()
		switch {
		case pending == 1:
			decoding++
		case l.hurried > 0 && i >= l.hurried:
			pending = 0
		default:
			depth = max(depth, s.done)
		}
		l.pending = append(l.pending, pending)
	}
	l.allowed = e.stepLimits(depth, decoding)
	l.rows = schedule.Plan(l.rows[:0], l.pending, l.allowed)
	most := e.mostDraft()
	l.batch, l.parts = l.batch[:0], l.parts[:0]
	for i, s := range l.running {
		n := l.rows[i]
		if n == 0 {
			continue
		}
		p := part{sequence: s, rows: n}
		tokens := s.tokens[:s.done+n]
		if n == s.pending() {
			tokens = s.draft(most)
			p.drafted = len(tokens) - len(s.tokens)
			p.logits = 1 + p.drafted
		}
		logits += p.logits
		l.batch = append(l.batch, model.Piece{Tokens: tokens[s.done:], Start: s.done, Blocks: s.table.Blocks(), Logits: p.logits})
		l.parts = append(l.parts, p)
	}
	return logits
}

// stepLimits are the limits of the next step, given how deep the deepest prompt is
// and how many answers go on: it takes no longer than maxStep, and beside answers
// only as much of a prompt as keeps their next token in time, unless the prompt has a
// time of its own to keep. Now and then such a step leaves the prompts out, to know
// what it takes without: answers grow.
func (e *Engine) stepLimits(depth, decoding int) schedule.Limits {
	l, limits := &e.loop, e.limits
	l.measured = false
	limits.StepTokens = max(limits.Running, min(limits.StepTokens, l.alone.Rows(depth)))
	if l.hurried > 0 {
		return limits.Hurried(decoding)
	}
	limits.PromptTokens = l.beside.Rows(depth)
	if decoding == 0 || decoding == len(l.running) {
		l.mixed = 0
		return limits
	}
	if l.mixed++; l.mixed == measureEvery {
		l.mixed, l.measured, limits.StepTokens = 0, true, decoding
	}
	return limits
}

// mostDraft is how many tokens each sequence may draft in the next step: none
// beside a prompt or with many running, where the machine has enough to do.
func (e *Engine) mostDraft() int {
	l := &e.loop
	running := len(l.running)
	if running > mostDrafting || slices.Max(l.pending) > 1 {
		return 0
	}
	return min(mostDraft, e.limits.StepTokens-running) / running
}

// advance moves a sequence on by what the step did for it: it draws the next
// tokens if there are rows, and ends it where it ends. Keys and values of drafted
// tokens that were refused lie behind done, where later ones replace them.
func (e *Engine) advance(p part, rows []row) {
	s := p.sequence
	var reason Reason
	var err error
	s.ran(p.rows)
	if len(rows) > 0 {
		var accepted int
		accepted, reason, err = s.verify(rows, e.tok, e.ends)
		s.done += accepted
	}
	e.loop.pool.Commit(s.table, s.tokens[:s.done])
	switch {
	case err != nil:
		e.mu.Lock()
		defer e.mu.Unlock()
		e.stats.Failed++
		e.end(s, "", s.failure(err))
	case reason != "":
		rest := s.detok.Flush()
		e.mu.Lock()
		defer e.mu.Unlock()
		e.stats.Completed++
		e.end(s, rest, s.outcome(reason))
	case e.noKV && len(rows) > 0:
		s.done = 0
	}
}
