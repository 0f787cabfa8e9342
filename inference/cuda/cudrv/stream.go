//go:build cuda && cgo

package cudrv

import (
	"unsafe"

	"gorgonia.org/cu"
)

// Stream is a queue of work on the device.
type Stream struct{ s cu.Stream }

// NewStream makes a stream that waits for no other one.
func NewStream() (Stream, error) {
	s, err := cu.MakeStream(cu.NonBlocking)
	return Stream{s}, failed("make a stream", err)
}

// Close ends the stream when its work is done.
func (s *Stream) Close() error { return failed("destroy a stream", s.s.Destroy()) }

// Synchronize waits for all work of the stream; errors of that work show here.
func (s Stream) Synchronize() error { return failed("synchronise", s.s.Synchronize()) }

// Upload queues a copy of the first n bytes of src, which must stay as they are
// until the stream has done it.
func (s Stream) Upload(dst Ptr, src *Pinned, n int) error {
	return failed("copy to the device", cu.MemcpyHtoDAsync(cu.DevicePtr(dst), unsafe.Pointer(unsafe.SliceData(src.memory[:n])), int64(n), s.s))
}

// Download queues a copy of n bytes to the start of dst.
func (s Stream) Download(dst *Pinned, src Ptr, n int) error {
	return failed("copy from the device", cu.MemcpyDtoHAsync(unsafe.Pointer(unsafe.SliceData(dst.memory[:n])), cu.DevicePtr(src), int64(n), s.s))
}

// Event marks a point in a stream.
type Event struct{ e cu.Event }

// NewEvent makes an event that measures time.
func NewEvent() (Event, error) {
	e, err := cu.MakeEvent(cu.DefaultEvent)
	return Event{e}, failed("make an event", err)
}

// Close frees the event.
func (e *Event) Close() error { return failed("destroy an event", cu.DestroyEvent(&e.e)) }

// Record puts the event at the end of the stream.
func (e Event) Record(s Stream) error { return failed("record an event", e.e.Record(s.s)) }

// Synchronize waits until the stream has reached the event.
func (e Event) Synchronize() error { return failed("wait for an event", e.e.Synchronize()) }

// Wait makes the stream wait for the event.
func (s Stream) Wait(e Event) error { return failed("wait for an event", s.s.Wait(e.e, 0)) }

// Since is the time from another event to this one, in milliseconds.
func (e Event) Since(start Event) (float64, error) {
	ms, err := start.e.Elapsed(e.e)
	return ms, failed("time between events", err)
}
