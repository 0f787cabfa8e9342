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
	onClose   func()
	ready     chan struct{} // holds a value while there may be something to read

	mu        sync.Mutex
	position  int // last place in the queue
	moved     bool
	scheduled *Scheduled
	text      []byte
	tokens    []int32
	end       Event
	ended     bool // end was set; it may have been read
}

// Next waits for the next event. After Done or Failed it returns io.EOF. When
// ctx ends first it returns its error, and the stream can still be read: whoever
// wants the Done of a cancelled request reads on with a context that lives.
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
func (s *Stream) Close() {
	s.cancelled.Store(true)
	if s.onClose != nil {
		s.onClose()
	}
}

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

// Feed is the writing end of a stream. It belongs to whoever answers: this
// engine, or one that passes requests on to another server. No method waits for
// the reader.
type Feed struct {
	stream  Stream
	unwatch func() bool
}

// NewFeed makes a stream. When its reader closes it, onClose is called, from the
// reader's goroutine; it may be nil.
func NewFeed(onClose func()) *Feed {
	return &Feed{
		stream:  Stream{onClose: onClose, ready: make(chan struct{}, 1)},
		unwatch: func() bool { return true },
	}
}

// Stream is the reading end.
func (f *Feed) Stream() *Stream { return &f.stream }

// Watch closes the stream when ctx ends before the answer does. It is called
// before the first event, once.
func (f *Feed) Watch(ctx context.Context) { f.unwatch = context.AfterFunc(ctx, f.stream.Close) }

// Cancelled reports whether the stream was closed.
func (f *Feed) Cancelled() bool { return f.stream.cancelled.Load() }

// Queued gives the place in the queue, from 1; the reader hears of it when it
// has changed.
func (f *Feed) Queued(position int) {
	if position != f.stream.position {
		f.change(func(s *Stream) { s.position, s.moved = position, true })
	}
}

// Scheduled says that the request has started.
func (f *Feed) Scheduled(e Scheduled) {
	f.change(func(s *Stream) { s.scheduled = &e })
}

// Push adds text and the tokens drawn for it.
func (f *Feed) Push(text string, tokens ...int32) {
	f.change(func(s *Stream) {
		s.text = append(s.text, text...)
		s.tokens = append(s.tokens, tokens...)
	})
}

// PushBytes is Push for text in a buffer that is not kept. It runs for every token
// and, unlike the others, allocates nothing but room for what was not read.
func (f *Feed) PushBytes(text []byte, tokens ...int32) {
	s := &f.stream
	s.mu.Lock()
	s.text = append(s.text, text...)
	s.tokens = append(s.tokens, tokens...)
	s.mu.Unlock()
	f.wake()
}

// Finish adds the rest of the text and then the last event, a Done or a Failed.
// Nothing may follow it.
func (f *Feed) Finish(rest string, end Event) {
	f.change(func(s *Stream) {
		s.text = append(s.text, rest...)
		s.end, s.ended = end, true
	})
	f.unwatch()
}

// change alters the stream and wakes its reader.
func (f *Feed) change(alter func(*Stream)) {
	f.stream.mu.Lock()
	alter(&f.stream)
	f.stream.mu.Unlock()
	f.wake()
}

func (f *Feed) wake() {
	select {
	case f.stream.ready <- struct{}{}:
	default:
	}
}
