package cpu

import (
	"slices"
	"sync"
	"time"
)

// turns decides whose operation a pool runs next.
//
// Foreground operations go first. While a foreground step is underway, the short
// time between its operations included, background operations get the pool only
// when they are due: for turnTime at a stretch and a share of all time. So a
// step is never slowed by more than that share, and background work is never
// kept out for longer than turnTime times its inverse.
type turns struct {
	mu   sync.Mutex
	busy bool // an operation runs
	// steps is the number of foreground steps underway.
	steps int
	// Waiting seats, the first come at the front.
	foreground, background []*seat
	// due is when background work may go beside foreground steps.
	due time.Time
	// alarm looks again when background work is due: a foreground step that
	// computes outside of operations, or was given up by a panic, frees nothing.
	alarm *time.Timer
	armed bool
}

const (
	// turnTime is how long a background operation keeps the pool once it is due:
	// long enough to be worth changing what lies in the caches.
	turnTime = time.Millisecond
	// backgroundShare is the inverse of the share of the time that background work
	// gets while foreground steps follow each other without a pause.
	backgroundShare = 10
)

func newTurns() *turns {
	t := &turns{}
	t.alarm = time.AfterFunc(time.Hour, t.ring)
	t.alarm.Stop()
	return t
}

// seat is one backend's place at a pool. Its owner is the goroutine of the
// backend; only setBackground may be called from others.
type seat struct {
	turns *turns
	turn  chan struct{} // one token: it is this seat's turn

	// Guarded by turns.mu.
	backgrounded bool
	inStep       bool
	since        time.Time // begin of a background turn
	until        time.Time // what a background turn is kept for

	// yielding is set for a turn that may have to be given up; the owner's.
	yielding bool
}

func newSeat(t *turns, background bool) *seat {
	return &seat{turns: t, turn: make(chan struct{}, 1), backgrounded: background}
}

// setBackground changes the class of a seat, also of one that waits or of one
// whose step is underway.
func (s *seat) setBackground(on bool) {
	t := s.turns
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.backgrounded == on {
		return
	}
	queue := t.queue(s)
	at := slices.Index(*queue, s)
	if at >= 0 {
		*queue = slices.Delete(*queue, at, at+1)
	}
	inStep := s.inStep
	t.mark(s, false)
	s.backgrounded = on
	t.mark(s, inStep)
	if at >= 0 {
		t.wait(s)
	}
	t.next()
}

// begin says that operations of a step will follow each other.
func (s *seat) begin() {
	s.turns.mu.Lock()
	defer s.turns.mu.Unlock()
	s.turns.mark(s, true)
}

// end says that the step is over.
func (s *seat) end() {
	s.turns.mu.Lock()
	defer s.turns.mu.Unlock()
	s.turns.mark(s, false)
	s.turns.next()
}

// mark keeps the number of foreground steps.
func (t *turns) mark(s *seat, inStep bool) {
	if s.inStep == inStep {
		return
	}
	s.inStep = inStep
	switch {
	case s.backgrounded:
	case inStep:
		t.steps++
	default:
		t.steps--
	}
}

// acquire waits for the pool. Whoever got it must release it.
func (s *seat) acquire() {
	t := s.turns
	t.mu.Lock()
	if !s.backgrounded && !t.busy && len(t.background) == 0 {
		t.busy, s.yielding = true, false
		t.mu.Unlock()
		return
	}
	t.wait(s)
	t.next()
	t.mu.Unlock()
	<-s.turn
}

// release hands the pool to the next in line.
func (s *seat) release() {
	t := s.turns
	t.mu.Lock()
	defer t.mu.Unlock()
	t.busy = false
	if s.yielding {
		t.charge(time.Since(s.since))
	}
	t.next()
}

// yields reports whether a background turn has to be given up.
func (s *seat) yields() bool {
	t := s.turns
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.backgrounded && t.wanted() && !time.Now().Before(s.until)
}

// wanted reports whether foreground work has a claim to the pool.
func (t *turns) wanted() bool { return t.steps > 0 || len(t.foreground) > 0 }

func (t *turns) queue(s *seat) *[]*seat {
	if s.backgrounded {
		return &t.background
	}
	return &t.foreground
}

func (t *turns) wait(s *seat) {
	queue := t.queue(s)
	*queue = append(*queue, s)
}

// charge puts off the time at which background work is due, by what it took from
// foreground steps. It never falls back further than one full turn.
func (t *turns) charge(took time.Duration) {
	if !t.wanted() {
		return
	}
	now := time.Now()
	if t.due.Before(now) {
		t.due = now
	}
	t.due = t.due.Add((backgroundShare - 1) * took)
	if latest := now.Add((backgroundShare - 1) * turnTime); t.due.After(latest) {
		t.due = latest
	}
}

// next gives the pool to whose turn it is.
func (t *turns) next() {
	if t.busy {
		return
	}
	if len(t.background) > 0 && t.nextBackground(time.Now()) {
		return
	}
	if len(t.foreground) > 0 {
		t.grant(&t.foreground, false)
	}
}

// nextBackground gives the pool to background work that may have it now: for as
// long as nobody else wants it, or for a turn that was due.
func (t *turns) nextBackground(now time.Time) bool {
	s := t.background[0]
	s.since, s.until = now, now
	switch {
	case !t.wanted():
	case !now.Before(t.due):
		s.until = now.Add(turnTime)
	default:
		if !t.armed {
			t.armed = true
			t.alarm.Reset(t.due.Sub(now))
		}
		return false
	}
	t.grant(&t.background, true)
	return true
}

// grant gives the pool to the first of a queue.
func (t *turns) grant(queue *[]*seat, yielding bool) {
	s := (*queue)[0]
	*queue = slices.Delete(*queue, 0, 1)
	t.busy, s.yielding = true, yielding
	s.turn <- struct{}{}
}

func (t *turns) ring() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.armed = false
	t.next()
}
