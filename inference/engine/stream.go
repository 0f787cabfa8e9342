package engine

import (
	"context"
	"io"
	"sync"
	"sync/atomic"
)

// Stream is the answer to one request. One goroutine reads it; Close may be
// called from any.
type Stream struct {
	cancelled atomic.Bool
	ready     chan struct{} // holds a value while there may be something to read

	mu        sync.Mutex
	position  int // last place in the queue
	moved     bool
	scheduled *Scheduled
	text      []byte
	tokens    []int32
	end       Event
	ended     bool // end was set; it may have been read
	unwatch   func() bool
}

func newStream() *Stream { return &Stream{ready: make(chan struct{}, 1)} }

// Next waits for the next event. After Done or Failed it returns io.EOF. When
// ctx ends first it returns its error, and the stream can still be read: whoever wants the
// Done of a cancelled request reads on with a context that lives.
func (s *Stream) Next(ctx context.Context) (Event, error) {
	for {
		event, ended := s.take()
		if event != nil {
			return event, nil
		}
		if ended {
			return nil, io.EOF
		}
		select {
		case <-s.ready:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Close gives the request up. Its blocks are free before the next step. Close
// after the end does nothing.
func (s *Stream) Close() { s.cancelled.Store(true) }

// take is the oldest event not read yet, or nil.
func (s *Stream) take() (event Event, ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.moved:
		s.moved = false
		return Queued{Position: s.position}, false
	case s.scheduled != nil:
		event, s.scheduled = *s.scheduled, nil
		return event, false
	case len(s.text) > 0 || s.ended && len(s.tokens) > 0:
		event = Delta{Text: string(s.text), Tokens: append([]int32(nil), s.tokens...)}
		s.text, s.tokens = s.text[:0], s.tokens[:0]
		return event, false
	}
	event, s.end = s.end, nil
	return event, s.ended
}

// change lets the engine alter the stream and wakes the reader.
func (s *Stream) change(alter func()) {
	s.mu.Lock()
	alter()
	s.mu.Unlock()
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

func (s *Stream) queued(position int) {
	if position == s.position {
		return
	}
	s.change(func() { s.position, s.moved = position, true })
}

func (s *Stream) started(e Scheduled) {
	s.change(func() { s.scheduled = &e })
}

func (s *Stream) push(text string, id int32) {
	s.change(func() {
		s.text = append(s.text, text...)
		s.tokens = append(s.tokens, id)
	})
}

// finish sets the last event, after rest, text that was held back.
func (s *Stream) finish(rest string, end Event) {
	s.change(func() {
		s.text = append(s.text, rest...)
		s.end, s.ended = end, true
	})
	s.unwatch()
}
