package cpu

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"
)

// task is work cut into items. Items of one task run in any order on any worker
// and must not depend on which: worker only names scratch space.
type task interface {
	do(worker, item int)
}

// spinTime is how long a thread looks for what it waits for before it sleeps.
// Steps of a small model are a few hundred tasks apart by microseconds, and
// waking a goroutine costs more than most of them take. Where other processes
// want the cores, whoever is waited for may be off its core for milliseconds:
// then to spin on would only keep it off.
const spinTime = 50 * time.Microsecond

// Pool is threads that compute. Backends that share one never compute at the same
// time: their operations take turns, those in the background behind the others
// (see Backend.SetBackground).
type Pool struct {
	size  int
	turns *turns

	task task
	// next holds the end of the open items in the upper half and the next
	// unclaimed one in the lower half. One word, so that a claim by a worker that
	// slept through several tasks is either void or an item of the task that is
	// open.
	next atomic.Uint64
	done atomic.Int64 // items done, counted from the first open one's number

	parked atomic.Int32
	wake   chan struct{}
	// awaited is set while the caller sleeps until workers finish.
	awaited  atomic.Bool
	finished chan struct{}
	// fault is the first panic of a worker in this turn.
	fault atomic.Pointer[workerPanic]

	closed atomic.Bool
	group  sync.WaitGroup
}

// NewPool starts a pool of that many threads, the caller's of an operation
// included; 0 means one for each CPU the process may use.
func NewPool(threads int) (*Pool, error) {
	if threads < 0 || threads > maxThreads {
		return nil, fmt.Errorf("cpu: %d threads (0 to %d)", threads, maxThreads)
	}
	if threads == 0 {
		threads = min(runtime.GOMAXPROCS(0), maxThreads)
	}
	p := &Pool{size: threads, turns: newTurns(), wake: make(chan struct{}, threads), finished: make(chan struct{}, 1)}
	for worker := 1; worker < threads; worker++ {
		p.group.Go(func() { p.work(worker) })
	}
	return p, nil
}

const maxThreads = 1024

// Threads is the number of threads that compute.
func (p *Pool) Threads() int { return p.size }

// Close stops the threads. No backend may use the pool any more.
func (p *Pool) Close() error {
	p.closed.Store(true)
	for range p.size - 1 {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
	p.group.Wait()
	return nil
}

// run does all items of t and returns when the last is finished. A single item
// is done by the caller at once.
func (p *Pool) run(s *seat, t task, items int) {
	if items == 1 {
		t.do(0, 0)
		return
	}
	for at := 0; at < items; {
		at = p.turn(s, t, at, items)
	}
}

// turn does items in one turn at the pool, and returns the first that is not
// done: hi, or an earlier one when the turn had to be given up. When an item
// panics, on whatever thread, the caller's goroutine does, and the pool is left in
// order.
func (p *Pool) turn(s *seat, t task, lo, hi int) (end int) {
	s.acquire()
	defer s.release()
	p.open(t, lo, hi)
	whole := false
	defer func() {
		end = p.cut()
		if !whole {
			p.done.Add(1) // the item that panicked
		}
		p.await(int64(end))
		p.task = nil
		if fault := p.fault.Swap(nil); fault != nil && whole {
			panic(fault)
		}
	}()
	for p.claim(0) {
		if s.yielding && s.yields() {
			break
		}
	}
	whole = true
	return end
}

func (p *Pool) open(t task, lo, hi int) {
	p.task = t
	p.done.Store(int64(lo))
	p.next.Store(uint64(hi)<<32 | uint64(lo))
	for range min(int(p.parked.Load()), hi-lo-1) {
		select {
		case p.wake <- struct{}{}:
		default:
			return
		}
	}
}

// cut closes the task before the first unclaimed item and returns that.
func (p *Pool) cut() int {
	for {
		state := p.next.Load()
		at, end := state&(1<<32-1), state>>32
		if at >= end {
			return int(end)
		}
		if p.next.CompareAndSwap(state, at<<32|at) {
			return int(at)
		}
	}
}

// await returns when the workers have done what they claimed.
func (p *Pool) await(end int64) {
	for deadline := time.Now().Add(spinTime); ; {
		for range 64 {
			if p.done.Load() == end {
				return
			}
		}
		if time.Now().After(deadline) {
			break
		}
	}
	// The flag goes up before the last look, so that whoever finishes after the
	// look sees it.
	p.awaited.Store(true)
	for p.done.Load() != end {
		<-p.finished
	}
	p.awaited.Store(false)
}

// claim does one open item and reports whether there was one.
func (p *Pool) claim(worker int) bool {
	if !p.opened() {
		return false
	}
	state := p.next.Add(1) - 1
	item := uint32(state)
	if item >= uint32(state>>32) {
		return false
	}
	p.task.do(worker, int(item))
	p.done.Add(1)
	return true
}

func (p *Pool) opened() bool {
	state := p.next.Load()
	return uint32(state) < uint32(state>>32)
}

// workerPanic is a panic on a worker's thread, as the caller's goroutine meets it.
type workerPanic struct {
	value any
	stack []byte
}

// String is the value and where it came from.
func (w *workerPanic) String() string { return fmt.Sprintf("%v, on a worker:\n%s", w.value, w.stack) }

// attempt is claim for a worker. A panic would end the process there, so it is kept for
// the caller, who knows whose work it was.
func (p *Pool) attempt(worker int) (did bool) {
	defer func() {
		if v := recover(); v != nil {
			p.fault.CompareAndSwap(nil, &workerPanic{v, debug.Stack()})
			p.done.Add(1)
			did = true
		}
	}()
	return p.claim(worker)
}

// work is the life of a worker.
func (p *Pool) work(worker int) {
	for !p.closed.Load() {
		if p.attempt(worker) {
			p.report()
		} else if !p.spin() {
			p.park()
		}
	}
}

// report wakes a caller that sleeps. A token left over from an earlier task makes
// it look once more, nothing else.
func (p *Pool) report() {
	if !p.awaited.Load() {
		return
	}
	select {
	case p.finished <- struct{}{}:
	default:
	}
}

// spin waits a little for an open item.
func (p *Pool) spin() bool {
	for deadline := time.Now().Add(spinTime); time.Now().Before(deadline); {
		for range 64 {
			if p.opened() {
				return true
			}
		}
	}
	return false
}

// park sleeps until open or Close wakes the worker. The second look after
// announcing itself closes the gap in which open saw nobody parked.
func (p *Pool) park() {
	p.parked.Add(1)
	if !p.opened() && !p.closed.Load() {
		<-p.wake
	}
	p.parked.Add(-1)
}
