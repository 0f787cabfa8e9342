//go:build cuda && cgo

package cuda

import (
	"fmt"
	"slices"
)

// The sizes of kernel/attend_tensor.cu: query rows of a tile, how few of them its warps
// share, and threads.
const (
	tensorTile          = 64
	sharedTile          = 16
	tensorAttendThreads = 128
)

// tensorAttention is the name of the kernel for heads of a size; empty where the device
// or the size has none. It serves all steps of a model, so that an answer's bits do not
// depend on how many rows a step has.
func (b *Backend) tensorAttention(f *cacheFormat, dim int) string {
	if !b.tensor || !slices.Contains(f.tensor, dim) {
		return ""
	}
	return fmt.Sprintf("attend_%s_%dx%d", f.name, dim, tensorTile)
}

// tensorAttendShared is the shared memory of a block whose tile has up to so many query
// rows (see Box in the kernel): a chunk of keys and of values, weights, two floats a row
// and, where registers do not hold them, queries.
func tensorAttendShared(dim, rows int) int {
	chunk, row := 64, 2*dim+16
	if dim > 128 {
		chunk = 32
	}
	n := 2*chunk*row + sharedTile*(2*chunk+16) + 2*4*tensorTile
	switch {
	case dim <= 128:
		return n
	case rows <= sharedTile:
		return n + sharedTile*row
	}
	return n + tensorTile*row
}

// findTensorAttention looks the kernels up, on the device's thread.
func (b *Backend) findTensorAttention() error {
	const allowed = 48 << 10 // of shared memory, by itself
	for _, f := range cacheFormats {
		for _, dim := range f.tensor {
			k, err := b.find(b.tensorAttention(f, dim))
			if err != nil {
				return err
			}
			if n := tensorAttendShared(dim, tensorTile); n > allowed {
				if err := k.AllowShared(n); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
