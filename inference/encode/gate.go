package encode

import (
	"context"
	"slices"
	"sync"
)

// gate lets one caller at a time use the model. Who is urgent goes before who is
// not; among equals the first come is the first served.
type gate struct {
	// urgency is told whether who uses the model, or anybody who waits for that, is
	// urgent: under the lock, and before a turn begins. May be nil.
	urgency func(urgent bool)

	mu             sync.Mutex
	busy, closed   bool
	urgent, normal []chan struct{}
}

// enter waits for the model. After a nil error the caller must leave.
func (g *gate) enter(ctx context.Context, urgent bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	g.mu.Lock()
	if g.closed || !g.busy {
		defer g.mu.Unlock()
		if g.closed {
			return ErrClosed
		}
		g.busy = true
		g.tell(urgent)
		return nil
	}
	if urgent {
		g.tell(true)
	}
	queue := g.queue(urgent)
	turn := make(chan struct{})
	*queue = append(*queue, turn)
	g.mu.Unlock()
	select {
	case <-turn:
		return nil
	case <-ctx.Done():
		g.abandon(queue, turn)
		return ctx.Err()
	}
}

func (g *gate) tell(urgent bool) {
	if g.urgency != nil {
		g.urgency(urgent)
	}
}

func (g *gate) queue(urgent bool) *[]chan struct{} {
	if urgent {
		return &g.urgent
	}
	return &g.normal
}

// abandon takes a waiting caller out of its queue, or passes its turn on when it
// was given one meanwhile.
func (g *gate) abandon(queue *[]chan struct{}, turn chan struct{}) {
	g.mu.Lock()
	if i := slices.Index(*queue, turn); i >= 0 {
		*queue = slices.Delete(*queue, i, i+1)
		g.mu.Unlock()
		return
	}
	g.mu.Unlock()
	g.leave()
}

// close turns away all who come later, waits for those in line and keeps the model.
func (g *gate) close() error {
	g.mu.Lock()
	if g.closed {
		defer g.mu.Unlock()
		return ErrClosed
	}
	g.closed = true
	if !g.busy {
		defer g.mu.Unlock()
		g.busy = true
		return nil
	}
	turn := make(chan struct{})
	g.normal = append(g.normal, turn)
	g.mu.Unlock()
	<-turn
	return nil
}

// leave hands the model to the next in line.
func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	urgent := len(g.urgent) > 0
	queue := g.queue(urgent)
	if len(*queue) == 0 {
		g.busy = false
		return
	}
	g.tell(urgent)
	close((*queue)[0])
	*queue = slices.Delete(*queue, 0, 1)
}
