package engine

import (
	"slices"
	"time"

	"ragd/inference/schedule"
)

// mostAhead is the most tokens of an answer that have their blocks from the start. It
// is also what is taken while the length of answers is not known.
const mostAhead = 256

// room is how many positions a sequence gets blocks for when it starts: its tokens and
// as much of its answer as is expected to come, within bounds; all of it where nothing
// is to be preempted. The caller holds the lock.
func (e *Engine) room(s *sequence) int {
	if e.reserve {
		return s.capacity()
	}
	return min(len(s.tokens)+e.outlook.ahead(s.drawn(), s.left()), s.capacity())
}

// growing is how many of the running sequences may come to need more blocks.
func (l *loop) growing() (n int) {
	for _, s := range l.running {
		if s.grows(s.table.Capacity()) {
			n++
		}
	}
	return n
}

// grow sees to it that every running sequence has a place in the cache for its next
// token, those that started first before others. Where no block is free, one of them
// is preempted, perhaps the one that needs it. The caller holds the lock.
func (e *Engine) grow() {
	l := &e.loop
	for _, s := range l.running {
		for s.table != nil && !l.pool.Grow(s.table, len(s.tokens)) {
			victim := e.victim()
			if victim == nil {
				break // It holds all blocks and needs more, which Submit does not let through.
			}
			e.preempt(victim)
		}
	}
	e.compact()
	if len(l.running) > mostDrafting {
		return
	}
	// Drafts lie behind the next token. They are worth a free block, but nobody's pause.
	for _, s := range l.running {
		if s.lookup != nil && l.pool.Free() > len(l.running) {
			l.pool.Grow(s.table, min(len(s.tokens)+mostDraft, s.capacity()))
		}
	}
}

// victim is the running sequence that is to be preempted next, or nil.
func (e *Engine) victim() *sequence {
	var running []*sequence
	var holders []schedule.Holder
	now := time.Now()
	for _, s := range e.loop.running {
		if s.table != nil {
			running = append(running, s)
			holders = append(holders, schedule.Holder{Promised: !s.due(now).IsZero(), Served: e.fair.Served(s.tenant)})
		}
	}
	if i := schedule.Victim(holders); i >= 0 {
		return running[i]
	}
	return nil
}

// preempt takes the blocks of a running sequence away and puts it at the front of the
// queue, behind those there that started before it. All else that it is stays as it
// is, so that it goes on with the very token that it would have drawn; what was
// computed stays in the prefix index, until others need the room. The caller holds the
// lock.
func (e *Engine) preempt(s *sequence) {
	e.loop.pool.Release(s.table)
	s.table = nil
	s.reached, s.done = max(s.reached, s.done), 0
	s.awaySince = time.Now()
	s.preemptions++
	e.stats.Preemptions++
	at, _ := slices.BinarySearchFunc(e.waiting[:e.preempted()], s, byStart)
	e.waiting = slices.Insert(e.waiting, at, s)
}

// preempted is how many sequences at the front of the queue have run before.
func (e *Engine) preempted() int {
	n := 0
	for n < len(e.waiting) && e.waiting[n].started > 0 {
		n++
	}
	return n
}

// byStart orders sequences by when they first started.
func byStart(a, b *sequence) int { return a.started - b.started }

// resume lets a sequence that was preempted run on.
func (e *Engine) resume(s *sequence) {
	s.returned()
	at, _ := slices.BinarySearchFunc(e.loop.running, s, byStart)
	e.loop.running = slices.Insert(e.loop.running, at, s)
}

// returned ends the time that a sequence was away.
func (s *sequence) returned() {
	if !s.awaySince.IsZero() {
		s.times.Preempted += time.Since(s.awaySince)
		s.awaySince = time.Time{}
	}
}

// ran takes note that the next rows of a sequence were run, and of how many of them
// for the second time. The caller owns the sequence.
func (s *sequence) ran(rows int) {
	s.recomputed += max(0, min(s.done+rows, s.reached)-s.done)
	s.done += rows
}
