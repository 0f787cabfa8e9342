//go:build cuda && cgo

package cuda

import (
	"ragd/inference/cuda/cudrv"
	"ragd/inference/model"
)

var _ model.StageOps = (*Backend)(nil)

// incoming is activations from another backend, on their way to a tensor.
type incoming struct {
	memory *cudrv.Pinned
	to     cudrv.Ptr
	bytes  int // of this step; 0 for none
}

// Rows runs the step and fetches x.
func (b *Backend) Rows(x model.Tensor) ([]float32, error) {
	t := x.(*tensor)
	data, err := b.flush(t.buf.ptr, 4*b.step.rows*t.width)
	return floatsOf(data), err
}

// SetRows sets x when the step runs, before its first launch.
func (b *Backend) SetRows(x model.Tensor, values []float32) {
	in, bytes := &b.incoming, bytesOf(values)
	in.to, in.bytes = x.(*tensor).buf.ptr, len(bytes)
	if err := b.device.Do(func() error { return growPinned(&in.memory, len(bytes)) }); err != nil {
		b.keep(err)
		return
	}
	copy(in.memory.Bytes(), bytes)
}

// upload queues the copy.
func (in *incoming) upload(to cudrv.Stream) error {
	if in.bytes == 0 {
		return nil
	}
	return to.Upload(in.to, in.memory, in.bytes)
}

// growPinned makes p hold so many bytes; what was there is lost when it moves. Nothing
// may be using it. It runs on the device's thread.
func growPinned(p **cudrv.Pinned, size int) error {
	if *p != nil && len((*p).Bytes()) >= size {
		return nil
	}
	if err := (*p).Free(); err != nil {
		return err
	}
	*p = nil
	memory, err := cudrv.AllocPinned(size)
	if err == nil {
		*p = memory
	}
	return err
}
