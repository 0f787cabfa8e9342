package cpu

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// waitAt puts a seat in line and sends its name once it has the pool.
func waitAt(s *seat, name string, got chan<- string) {
	go func() {
		s.acquire()
		got <- name
	}()
	synctest.Wait()
}

func TestTurnsForegroundFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns()
		seats := map[string]*seat{
			"holder": newSeat(turns, false), "ingest 1": newSeat(turns, true), "ingest 2": newSeat(turns, true),
			"answer 1": newSeat(turns, false), "answer 2": newSeat(turns, false),
		}
		turns.due = time.Now().Add(turnTime)
		seats["holder"].acquire()
		got := make(chan string, 4)
		for _, name := range []string{"ingest 1", "ingest 2", "answer 1", "answer 2"} {
			waitAt(seats[name], name, got)
		}
		var order []string
		for s := seats["holder"]; len(order) < 4; {
			s.release()
			name := <-got
			order, s = append(order, name), seats[name]
		}
		if want := []string{"answer 1", "answer 2", "ingest 1", "ingest 2"}; !slices.Equal(order, want) {
			t.Errorf("order %v", order)
		}
	})
}

// Between two operations of a foreground step the pool is free, but not for
// background work; when the step is over, it is.
func TestTurnsKeepThePoolForAStep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns()
		turns.due = time.Now().Add(turnTime)
		answer, ingest := newSeat(turns, false), newSeat(turns, true)
		got := make(chan string, 1)
		answer.begin()
		waitAt(ingest, "ingest", got)
		for range 3 {
			answer.acquire()
			answer.release()
			if len(got) > 0 {
				t.Fatal("ingest had a turn inside the step")
			}
		}
		answer.end()
		synctest.Wait()
		if len(got) != 1 {
			t.Fatal("ingest had no turn after the step")
		}
		if ingest.yields() {
			t.Error("ingest gives up what nobody wants")
		}
		answer.begin()
		if !ingest.yields() {
			t.Error("ingest keeps what it had for want of others")
		}
		ingest.release()
	})
}

// share runs a foreground step that never pauses beside background work that
// never pauses either, with operations of the given length, and returns what part
// of the time the background had and its longest wait.
func share(turns *turns, operation, span time.Duration) (part float64, longest time.Duration) {
	answer, ingest := newSeat(turns, false), newSeat(turns, true)
	stop := time.Now().Add(span)
	var had time.Duration
	done := make(chan struct{})
	answer.begin()
	go func() {
		defer close(done)
		for time.Now().Before(stop) {
			began := time.Now()
			ingest.acquire()
			longest = max(longest, time.Since(began))
			began = time.Now()
			for !ingest.yields() {
				time.Sleep(turnTime / 10) // an item
			}
			had += time.Since(began)
			ingest.release()
		}
	}()
	for time.Now().Before(stop) {
		answer.acquire()
		time.Sleep(operation)
		answer.release()
	}
	<-done
	return float64(had) / float64(span), longest
}

func TestTurnsStarveNobody(t *testing.T) {
	for _, operation := range []time.Duration{20 * time.Microsecond, time.Millisecond, 3 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			part, longest := share(newTurns(), operation, 2*time.Second)
			if part < 0.07 || part > 0.11 {
				t.Errorf("operations of %v: background work had %.3f of the time", operation, part)
			}
			if most := backgroundShare*turnTime + operation; longest > most {
				t.Errorf("operations of %v: background work waited %v, at most %v expected", operation, longest, most)
			}
		})
	}
}

// A step that a panic gave up never ends and frees nothing: time must.
func TestTurnsAlarm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns()
		answer, ingest := newSeat(turns, false), newSeat(turns, true)
		answer.begin()
		for range 5 {
			began := time.Now()
			ingest.acquire()
			if waited := time.Since(began); waited > backgroundShare*turnTime {
				t.Errorf("waited %v", waited)
			}
			time.Sleep(5 * turnTime)
			ingest.release()
		}
		answer.begin()
		answer.end()
		if turns.wanted() {
			t.Error("the next step of the backend does not mend the count")
		}
	})
}

// Background work that a query waits for stops being background work, in line
// as well as at the pool.
func TestTurnsChangeOfClass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		turns := newTurns()
		turns.due = time.Now().Add(turnTime)
		answer, ingest := newSeat(turns, false), newSeat(turns, true)
		got := make(chan string, 1)
		answer.begin()
		ingest.begin()
		waitAt(ingest, "ingest", got)
		ingest.setBackground(false)
		synctest.Wait()
		if len(got) != 1 {
			t.Fatal("a raised seat still waits")
		}
		if ingest.yields() || turns.steps != 2 {
			t.Errorf("a raised seat yields %v; %d steps", ingest.yields(), turns.steps)
		}
		ingest.setBackground(true)
		if turns.steps != 1 {
			t.Errorf("%d steps after it was lowered", turns.steps)
		}
		ingest.release()
		ingest.end()
		answer.end()
		if turns.wanted() || turns.busy {
			t.Errorf("in the end %d steps are underway, and the pool is busy: %v", turns.steps, turns.busy)
		}
	})
}
