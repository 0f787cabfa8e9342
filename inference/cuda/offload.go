//go:build cuda && cgo

package cuda

import (
	"fmt"

	"ragd/inference/cuda/cudrv"
	"ragd/inference/model"
)

var _ model.OffloadOps = (*Backend)(nil)

// offload is cache blocks in pinned host memory. Copies go through a stream of their
// own, so that they run while the host prepares the step that waits for them.
type offload struct {
	cache  *cache
	memory *cudrv.Pinned
	stream cudrv.Stream
	moved  cudrv.Event
	open   bool // stream and event exist
	waits  bool // the next step has to wait for moved
}

// Offload reserves host memory for slots blocks of c.
func (b *Backend) Offload(c model.Cache, slots int) error {
	o := &b.offload
	o.cache = c.(*cache)
	return b.device.Do(func() (err error) {
		size := int(o.slotBytes()) * slots
		if o.memory, err = cudrv.AllocPinned(size); err != nil {
			return fmt.Errorf("%w: host memory for %d cache blocks: %w", ErrLoad, slots, err)
		}
		if o.stream, err = cudrv.NewStream(); err != nil {
			return err
		}
		if o.moved, err = cudrv.NewEvent(); err != nil {
			return err
		}
		o.open = true
		return nil
	})
}

// slotBytes is the size of a block in all layers.
func (o *offload) slotBytes() int64 {
	var n int64
	for _, size := range o.cache.sizes {
		n += size * int64(o.cache.shape.Layers)
	}
	return n
}

// MoveBlocks queues the copies, each plane of a block with one for all layers. The
// stream of steps is idle between steps, so they need not wait for it.
func (b *Backend) MoveBlocks(moves []model.BlockMove) error {
	o := &b.offload
	err := b.device.Do(func() error {
		o.waits = true
		for _, m := range moves {
			if err := o.move(m); err != nil {
				return err
			}
		}
		return o.moved.Record(o.stream)
	})
	b.tellLost(err)
	return err
}

func (o *offload) move(m model.BlockMove) error {
	at, shape := int(m.Slot)*int(o.slotBytes()), &o.cache.shape
	for i, size := range o.cache.sizes {
		r := cudrv.Rows{
			Host: o.memory, Offset: at, Count: shape.Layers, Bytes: int(size),
			Device: o.cache.planes[i] + cudrv.Ptr(int64(m.Block)*size), Pitch: int(size) * shape.Blocks,
		}
		copyRows := o.stream.UploadRows
		if m.Save {
			copyRows = o.stream.DownloadRows
		}
		if err := copyRows(r); err != nil {
			return err
		}
		at += int(size) * shape.Layers
	}
	return nil
}

// await makes the step wait for what is being moved. It runs on the device's thread.
func (o *offload) await(step cudrv.Stream) error {
	if !o.waits {
		return nil
	}
	o.waits = false
	return step.Wait(o.moved)
}

// free ends the copies and gives the memory back.
func (o *offload) free() error {
	if !o.open {
		return o.memory.Free()
	}
	o.open = false
	err := o.stream.Close()
	if e := o.moved.Close(); err == nil {
		err = e
	}
	if e := o.memory.Free(); err == nil {
		err = e
	}
	return err
}
