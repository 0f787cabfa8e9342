package encode

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
)

// waiting blocks until n callers stand in line.
func (g *gate) waiting(n int) {
	for {
		g.mu.Lock()
		have := len(g.urgent) + len(g.normal)
		g.mu.Unlock()
		if have == n {
			return
		}
		runtime.Gosched()
	}
}

func TestGateServesQueriesFirst(t *testing.T) {
	var told []bool
	g := gate{urgency: func(urgent bool) { told = append(told, urgent) }}
	if err := g.enter(context.Background(), false); err != nil {
		t.Fatal(err)
	}
	served := make(chan string, 4)
	for i, name := range []string{"passage 1", "passage 2", "query 1", "query 2"} {
		go func() {
			if err := g.enter(context.Background(), name[0] == 'q'); err != nil {
				name = err.Error()
			}
			served <- name
			g.leave()
		}()
		g.waiting(i + 1)
	}
	g.leave()
	var got []string
	for range 4 {
		got = append(got, <-served)
	}
	if want := []string{"query 1", "query 2", "passage 1", "passage 2"}; !slices.Equal(got, want) {
		t.Errorf("served %v", got)
	}
	// The first passage, the two queries that come meanwhile, and the four turns.
	if want := []bool{false, true, true, true, true, false, false}; !slices.Equal(told, want) {
		t.Errorf("told %v", told)
	}
}

func TestGateForgetsWhoGaveUp(t *testing.T) {
	var g gate
	if err := g.enter(context.Background(), false); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan error)
	go func() { gone <- g.enter(ctx, true) }()
	g.waiting(1)
	cancel()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	g.leave()
	if err := g.enter(context.Background(), false); err != nil {
		t.Fatal(err)
	}
	closed := make(chan error)
	go func() { closed <- g.close() }()
	g.waiting(1)
	if err := g.enter(context.Background(), true); !errors.Is(err, ErrClosed) {
		t.Errorf("after close: %v", err)
	}
	g.leave()
	if err := <-closed; err != nil {
		t.Error(err)
	}
}
