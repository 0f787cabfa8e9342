package cpu

import (
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// task is work cut into items. Items of one task run in any order on any worker
// and must not depend on which: worker only names scratch space.
type task interface {
	do(worker, item int)
}

// spinTime is how long an idle worker looks for the next task before it parks.
// Steps of a small model are a few hundred tasks apart by microseconds, and
// waking a parked goroutine costs more than most of them take.
const spinTime = 50 * time.Microsecond

// pool runs tasks on the caller and n-1 persistent workers. One goroutine at a
// time may call run.
type pool struct {
	size int
	task task
	// next holds the number of items in the upper half and the next unclaimed
	// one in the lower half. One word, so that a claim by a worker that slept
	// through several tasks is either void or an item of the task that is open.
	next   atomic.Uint64
	done   atomic.Int64
	parked atomic.Int32
	wake   chan struct{}
	closed atomic.Bool
	group  sync.WaitGroup
}

func newPool(size int) *pool {
	p := &pool{size: size, wake: make(chan struct{}, size)}
	for worker := 1; worker < size; worker++ {
		p.group.Go(func() { p.work(worker) })
	}
	return p
}

// run does all items of t and returns when the last is finished.
func (p *pool) run(t task, items int) {
	if items == 1 || p.size == 1 {
		for i := range items {
			t.do(0, i)
		}
		return
	}
	p.task = t
	p.done.Store(0)
	p.next.Store(uint64(items) << 32)
	p.wakeParked()
	for p.claim(0) {
	}
	for spins := 0; p.done.Load() != int64(items); spins++ {
		if spins%256 == 255 {
			runtime.Gosched()
		}
	}
	p.task = nil
}

// claim does one open item and reports whether there was one.
func (p *pool) claim(worker int) bool {
	state := p.next.Load()
	if uint32(state) >= uint32(state>>32) {
		return false
	}
	state = p.next.Add(1) - 1
	item := uint32(state)
	if item >= uint32(state>>32) {
		return false
	}
	p.task.do(worker, int(item))
	p.done.Add(1)
	return true
}

// work is the life of a worker.
func (p *pool) work(worker int) {
	for !p.closed.Load() {
		if !p.claim(worker) && !p.spin() {
			p.park()
		}
	}
}

// spin waits a little for an open item.
func (p *pool) spin() bool {
	for deadline := time.Now().Add(spinTime); time.Now().Before(deadline); {
		for range 64 {
			if p.open() {
				return true
			}
		}
	}
	return false
}

func (p *pool) open() bool {
	state := p.next.Load()
	return uint32(state) < uint32(state>>32)
}

// park sleeps until run or close wakes the worker. The second look after
// announcing itself closes the gap in which run saw nobody parked.
func (p *pool) park() {
	p.parked.Add(1)
	if !p.open() && !p.closed.Load() {
		<-p.wake
	}
	p.parked.Add(-1)
}

func (p *pool) wakeParked() {
	for range p.parked.Load() {
		select {
		case p.wake <- struct{}{}:
		default:
			return
		}
	}
}

// close stops the workers. No task may be running.
func (p *pool) close() {
	p.closed.Store(true)
	for range p.size - 1 {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
	p.group.Wait()
}
