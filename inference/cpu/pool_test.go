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

// sleepTask holds every item long enough for all workers to come.
type sleepTask struct{ countTask }

func (t *sleepTask) do(worker, item int) {
	time.Sleep(time.Millisecond)
	t.countTask.do(worker, item)
}

func TestPoolUsesItsWorkersAfterParking(t *testing.T) {
	p := newPool(3)
	defer p.close()
	time.Sleep(10 * spinTime)
	task := &sleepTask{countTask{make([]atomic.Int32, 60), make([]atomic.Int32, 3)}}
	p.run(task, 60)
	for w := range task.workers {
		if task.workers[w].Load() == 0 {
			t.Errorf("worker %d did nothing", w)
		}
	}
}
