//go:build cuda && cgo

package cuda

import (
	"ragd/inference/cuda/cudrv"
	"ragd/inference/model"
	"ragd/inference/quant"
)

var _ model.RoomOps = (*Backend)(nil)

// Room is the device's memory.
func (b *Backend) Room() (free, total int64, err error) {
	err = b.device.Do(func() error {
		free, total, err = cudrv.MemoryInfo()
		return err
	})
	return free, total, err
}

// MatrixBytes is what a matrix takes on the device; 0 for types that LoadMatrix refuses.
func (b *Backend) MatrixBytes(t quant.Type, rows, cols int) int64 {
	return int64(formats[t].lay(rows, cols).size)
}

// CacheBytes is what a cache takes.
func (b *Backend) CacheBytes(s model.CacheShape) int64 {
	f := cacheFormats[b.cacheType]
	if f == nil {
		return 0
	}
	var n int64
	for _, block := range f.sizes(s) {
		n += block * int64(s.Layers) * int64(s.Blocks)
	}
	return n
}
