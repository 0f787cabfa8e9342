package cpu

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// countTask counts how often each item was done, and on which workers.
type countTask struct {
	items   []atomic.Int32
	workers []atomic.Int32
}

func (t *countTask) do(worker, item int) {
	t.items[item].Add(1)
	t.workers[worker].Add(1)
}

func newTestPool(t *testing.T, size int) (*Pool, *seat) {
	t.Helper()
	p, err := NewPool(size)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p, newSeat(p.turns, false)
}

func TestPoolDoesEveryItemOnce(t *testing.T) {
	for _, size := range []int{1, 2, 5} {
		p, s := newTestPool(t, size)
		for round := range 300 {
			n := 1 + round%37
			task := &countTask{make([]atomic.Int32, n), make([]atomic.Int32, size)}
			p.run(s, task, n)
			for i := range task.items {
				if got := task.items[i].Load(); got != 1 {
					t.Fatalf("%d workers, round %d: item %d of %d done %d times", size, round, i, n, got)
				}
			}
			if round%50 == 49 {
				time.Sleep(3 * spinTime) // let the workers park
			}
		}
	}
}

func TestPoolRunsNothingForNoItems(t *testing.T) {
	p, s := newTestPool(t, 3)
	p.run(s, &countTask{}, 0)
}

// meetTask's items wait for each other, so that each needs a worker of its own.
type meetTask struct {
	arrived atomic.Int32
	all     int32
	late    atomic.Bool
}

func (t *meetTask) do(_, _ int) {
	t.arrived.Add(1)
	for deadline := time.Now().Add(30 * time.Second); t.arrived.Load() < t.all; {
		if time.Now().After(deadline) {
			t.late.Store(true)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

func TestPoolWakesParkedWorkers(t *testing.T) {
	p, s := newTestPool(t, 3)
	for range 3 {
		time.Sleep(10 * spinTime)
		task := &meetTask{all: 3}
		p.run(s, task, 3)
		if task.late.Load() {
			t.Fatal("not every worker came")
		}
	}
}

func TestPoolRefusesAbsurdSizes(t *testing.T) {
	for _, threads := range []int{-1, maxThreads + 1} {
		if p, err := NewPool(threads); err == nil {
			p.Close()
			t.Errorf("%d threads are taken", threads)
		}
	}
}

// Backends of both classes that share a pool, each changing class now and then:
// no item is lost or done twice, and nobody is left waiting.
func TestPoolIsShared(t *testing.T) {
	p, first := newTestPool(t, 3)
	seats := []*seat{first, newSeat(p.turns, true), newSeat(p.turns, true), newSeat(p.turns, false)}
	var group sync.WaitGroup
	for i, s := range seats {
		group.Go(func() {
			for round := range 400 {
				n := 2 + round%29
				task := &countTask{make([]atomic.Int32, n), make([]atomic.Int32, p.size)}
				s.begin()
				p.run(s, task, n)
				s.end()
				seats[(i+1)%len(seats)].setBackground(round%3 == 0)
				for j := range task.items {
					if got := task.items[j].Load(); got != 1 {
						t.Errorf("seat %d, round %d: item %d of %d done %d times", i, round, j, n, got)
					}
				}
			}
		})
	}
	group.Wait()
}

// slowTask's items take a while, and tell that the first was begun.
type slowTask struct {
	countTask
	begun chan struct{}
	once  sync.Once
}

func (t *slowTask) do(worker, item int) {
	t.once.Do(func() { close(t.begun) })
	time.Sleep(time.Millisecond)
	t.countTask.do(worker, item)
}

// A long background operation lets a foreground one in before it is over, and is
// still done in full.
func TestPoolCutsBackgroundOperations(t *testing.T) {
	const items = 2000
	p, front := newTestPool(t, 2)
	back := newSeat(p.turns, true)
	long := &slowTask{countTask: countTask{make([]atomic.Int32, items), make([]atomic.Int32, 2)}, begun: make(chan struct{})}
	var group sync.WaitGroup
	group.Go(func() { p.run(back, long, items) })
	<-long.begun
	front.begin()
	p.run(front, &countTask{make([]atomic.Int32, 8), make([]atomic.Int32, 2)}, 8)
	if long.items[items-1].Load() != 0 {
		t.Error("the foreground waited for the whole background operation")
	}
	front.end()
	group.Wait()
	for i := range long.items {
		if got := long.items[i].Load(); got != 1 {
			t.Fatalf("item %d done %d times", i, got)
		}
	}
}

// panicTask panics on the caller's goroutine, or on that of a worker; all others wait
// for that.
type panicTask struct {
	onWorker bool
	called   chan struct{}
	once     sync.Once
}

func (t *panicTask) do(worker, _ int) {
	if (worker > 0) == t.onWorker {
		t.once.Do(func() { close(t.called) })
		panic("kernel fault")
	}
	<-t.called
}

func TestPoolOutlivesAPanic(t *testing.T) {
	p, s := newTestPool(t, 3)
	for i := range 40 {
		func() {
			defer func() {
				if v := recover(); !strings.Contains(fmt.Sprint(v), "kernel fault") {
					t.Errorf("panicked with %v", v)
				}
			}()
			p.run(s, &panicTask{onWorker: i%2 == 1, called: make(chan struct{})}, 100)
		}()
		task := &countTask{make([]atomic.Int32, 50), make([]atomic.Int32, 3)}
		p.run(newSeat(p.turns, false), task, 50)
		for i := range task.items {
			if got := task.items[i].Load(); got != 1 {
				t.Fatalf("item %d done %d times after a panic", i, got)
			}
		}
	}
}

func TestPoolAllocatesNothing(t *testing.T) {
	p, front := newTestPool(t, 2)
	back := newSeat(p.turns, true)
	task := &countTask{make([]atomic.Int32, 20), make([]atomic.Int32, 2)}
	for name, s := range map[string]*seat{"foreground": front, "background": back} {
		if n := testing.AllocsPerRun(200, func() {
			s.begin()
			p.run(s, task, 20)
			s.end()
		}); n != 0 {
			t.Errorf("%s: %v allocations an operation", name, n)
		}
	}
}
