//go:build cuda && cgo

package cuda

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"ragd/inference/cuda/cudrv"
)

// plan is the launches of a step, in order, with their packed arguments.
type plan struct {
	launches []launch
	args     []byte
	shapes   []byte // functions and grids, for the key
	whole    []byte // the key
}

type launch struct {
	f    cudrv.Function
	grid cudrv.Grid
	// args and end are where its arguments begin and end.
	args, end int
}

func (p *plan) reset() {
	p.launches, p.args, p.shapes = p.launches[:0], p.args[:0], p.shapes[:0]
}

// key tells plans apart: two with the same key do the same to the same memory. It is
// valid until the next one.
func (p *plan) key() []byte {
	p.finish()
	p.whole = append(append(p.whole[:0], p.shapes...), p.args...)
	return p.whole
}

// launch adds a kernel; its arguments follow, in the kernel's order.
func (b *Backend) launch(f cudrv.Function, g cudrv.Grid) *plan {
	p := &b.plan
	p.finish()
	p.align(8)
	p.launches = append(p.launches, launch{f: f, grid: g, args: len(p.args)})
	p.shapes = binary.LittleEndian.AppendUint64(p.shapes, f.ID())
	for _, n := range [...]int{g.X, g.Y, g.Z, g.Threads, g.Shared} {
		p.shapes = binary.LittleEndian.AppendUint32(p.shapes, uint32(n))
	}
	return p
}

// finish ends the arguments of the newest launch.
func (p *plan) finish() {
	if n := len(p.launches); n > 0 {
		p.launches[n-1].end = len(p.args)
	}
}

func (p *plan) align(n int) {
	for len(p.args)%n != 0 {
		p.args = append(p.args, 0)
	}
}

func (p *plan) ptrs(list ...cudrv.Ptr) *plan {
	p.align(8)
	for _, v := range list {
		p.args = binary.LittleEndian.AppendUint64(p.args, uint64(v))
	}
	return p
}

func (p *plan) ints(list ...int) *plan {
	for _, v := range list {
		p.args = binary.LittleEndian.AppendUint32(p.args, uint32(int32(v)))
	}
	return p
}

func (p *plan) floats(list ...float32) *plan {
	for _, v := range list {
		p.args = binary.LittleEndian.AppendUint32(p.args, math.Float32bits(v))
	}
	return p
}

// run queues everything on the stream. It runs on the device's thread.
func (p *plan) run(s cudrv.Stream) error {
	p.finish()
	for _, l := range p.launches {
		if err := s.Launch(l.f, l.grid, p.args[l.args:l.end]); err != nil {
			return err
		}
	}
	return nil
}

// staging is the step's small tables on their way to the device: pinned memory with
// a twin there, in chunks. A chunk never moves while a plan refers to it.
type staging struct{ chunks []chunk }

type chunk struct {
	host *cudrv.Pinned
	dev  cudrv.Ptr
	used int
}

const (
	firstChunk = 256 << 10
	stageAlign = 16
)

func (s *staging) reset() {
	for i := range s.chunks {
		s.chunks[i].used = 0
	}
}

// stage copies a table to staging memory and returns where it will be on the device.
func stage[T int32 | float32](b *Backend, table []T) cudrv.Ptr {
	if len(table) == 0 {
		return 0
	}
	host, dev := b.stageBytes(4 * len(table))
	for i, v := range table {
		binary.LittleEndian.PutUint32(host[4*i:], bits(v))
	}
	return dev
}

func bits[T int32 | float32](v T) uint32 {
	if f, ok := any(v).(float32); ok {
		return math.Float32bits(f)
	}
	return uint32(int32(v))
}

// stageBytes finds room for n bytes. On an error, which is kept, the bytes lead nowhere.
func (b *Backend) stageBytes(n int) ([]byte, cudrv.Ptr) {
	n = (n + stageAlign - 1) / stageAlign * stageAlign
	for i := range b.staging.chunks {
		c := &b.staging.chunks[i]
		if room := c.host.Bytes(); c.used+n <= len(room) {
			at := c.used
			c.used += n
			return room[at:], c.dev + cudrv.Ptr(at)
		}
	}
	size := max(firstChunk<<len(b.staging.chunks), n)
	var c chunk
	err := b.device.Do(func() (err error) {
		if c.host, err = cudrv.AllocPinned(size); err != nil {
			return err
		}
		c.dev, err = cudrv.Alloc(int64(size))
		return err
	})
	if err != nil {
		b.keep(err)
		return make([]byte, n), 0
	}
	c.used = n
	b.staging.chunks = append(b.staging.chunks, c)
	return c.host.Bytes(), c.dev
}

// upload queues the copies of what was staged.
func (s *staging) upload(to cudrv.Stream) error {
	for i := range s.chunks {
		if c := &s.chunks[i]; c.used > 0 {
			if err := to.Upload(c.dev, c.host, c.used); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *staging) free() error {
	var first error
	for i := range s.chunks {
		if err := s.chunks[i].host.Free(); first == nil {
			first = err
		}
	}
	s.chunks = nil
	return first
}

// flush runs the step and fetches the first n bytes of its output.
func (b *Backend) flush(output cudrv.Ptr, n int) ([]byte, error) {
	err := b.err
	if err == nil {
		err = b.device.Do(func() error { return b.runStep(output, n) })
	}
	b.plan.reset()
	b.freeRetired()
	b.tellLost(err)
	if err != nil || n == 0 {
		return nil, err
	}
	return b.results.Bytes()[:n], nil
}

// tellLost says once that the device is lost, if that is what err says.
func (b *Backend) tellLost(err error) {
	if errors.Is(err, cudrv.ErrLost) && b.lost != nil {
		b.lost(err)
		b.lost = nil
	}
}

// runStep runs on the device's thread. The stream is always waited for, also after
// an error, so that nothing is in flight when memory is given back.
func (b *Backend) runStep(output cudrv.Ptr, n int) error {
	err := b.queueStep(output, n)
	if sync := b.stream.Synchronize(); err == nil {
		err = sync
	}
	return err
}

func (b *Backend) queueStep(output cudrv.Ptr, n int) error {
	if err := b.staging.upload(b.stream); err != nil {
		return err
	}
	if err := b.incoming.upload(b.stream); err != nil {
		return err
	}
	if err := b.offload.await(b.stream); err != nil {
		return err
	}
	if err := b.runPlan(); err != nil || n == 0 {
		return err
	}
	if err := growPinned(&b.results, n); err != nil {
		return err
	}
	return b.stream.Download(b.results, output, n)
}

// freeRetired gives replaced buffers back. A lost context has no memory left to free.
func (b *Backend) freeRetired() {
	if len(b.retired) == 0 {
		return
	}
	list := slices.Clone(b.retired)
	b.retired = b.retired[:0]
	_ = b.device.Do(func() error {
		for _, p := range list {
			if err := cudrv.Free(p); err != nil {
				return err
			}
		}
		return nil
	})
}
