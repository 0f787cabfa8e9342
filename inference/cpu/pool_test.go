package cpu

import (
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

func TestPoolDoesEveryItemOnce(t *testing.T) {
	for _, size := range []int{1, 2, 5} {
		p := newPool(size)
		for round := range 300 {
			n := 1 + round%37
			task := &countTask{make([]atomic.Int32, n), make([]atomic.Int32, size)}
			p.run(task, n)
			for i := range task.items {
				if got := task.items[i].Load(); got != 1 {
					t.Fatalf("%d workers, round %d: item %d of %d done %d times", size, round, i, n, got)
				}
			}
			if round%50 == 49 {
				time.Sleep(3 * spinTime) // let the workers park
			}
		}
		p.close()
	}
}

func TestPoolRunsNothingForNoItems(t *testing.T) {
	p := newPool(3)
	defer p.close()
	p.run(&countTask{}, 0)
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
	p := newPool(3)
	defer p.close()
	for range 3 {
		time.Sleep(10 * spinTime)
		task := &meetTask{all: 3}
		p.run(task, 3)
		if task.late.Load() {
			t.Fatal("not every worker came")
		}
	}
}
