//go:build cuda && cgo

package cudrv

import (
	"runtime"
	"sync"

	"gorgonia.org/cu"
)

// Device is a context on one device, with the goroutine that owns it. A context
// is current on an operating system thread, so that goroutine keeps its thread
// and everything that touches the device runs there, through Do.
type Device struct {
	info Info
	jobs chan job
	quit chan struct{} // closed by Close
	done chan struct{} // closed when the goroutine has ended
	once sync.Once
	err  error // of closing
}

type job struct {
	run  func() error
	done chan<- error
}

// NewDevice makes a context on the device of the open driver.
func NewDevice(ordinal int) (*Device, error) {
	info, err := describe(ordinal)
	if err != nil {
		return nil, err
	}
	d := &Device{info: info, jobs: make(chan job), quit: make(chan struct{}), done: make(chan struct{})}
	started := make(chan error)
	go d.serve(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return d, nil
}

// Info describes the device.
func (d *Device) Info() Info { return d.info }

// serve makes the context, runs jobs until Close, and destroys it.
func (d *Device) serve(started chan<- error) {
	defer close(d.done)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ctx, err := d.open()
	started <- err
	if err != nil {
		return
	}
	for {
		select {
		case j := <-d.jobs:
			j.done <- j.run()
		case <-d.quit:
			d.err = failed("destroy the context", ctx.Destroy())
			// A thread goes back to the runtime without a context.
			_ = cu.SetCurrentContext(cu.CUContext{})
			return
		}
	}
}

func (d *Device) open() (cu.CUContext, error) {
	dev, err := cu.GetDevice(d.info.Ordinal)
	if err != nil {
		return cu.CUContext{}, failed("find the device", err)
	}
	ctx, err := dev.MakeContext(cu.SchedBlockingSync)
	return ctx, failed("make a context", err)
}

// Do runs f on the device's thread and returns its error. Calls from several
// goroutines follow each other. After Close it fails with ErrClosed.
func (d *Device) Do(f func() error) error {
	done := make(chan error, 1)
	select {
	case d.jobs <- job{f, done}:
		return <-done
	case <-d.done:
		return ErrClosed
	}
}

// Close destroys the context, and with it everything allocated there.
func (d *Device) Close() error {
	d.once.Do(func() { close(d.quit) })
	<-d.done
	return d.err
}
