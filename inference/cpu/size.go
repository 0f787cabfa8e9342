package cpu

import (
	"ragd/inference/cpu/kernel"
	"ragd/inference/model"
	"ragd/inference/quant"
)

var _ model.SizeOps = (*Backend)(nil)

// MatrixBytes is what a matrix for products takes; 0 for types that LoadMatrix refuses.
// Rows that are only looked up take what they take in the file, which is at most a few
// rows less.
func (b *Backend) MatrixBytes(t quant.Type, rows, cols int) int64 {
	if b.float32 {
		t = quant.F32
	}
	return kernel.Size(kernel.Type(t), rows, cols)
}

// CacheBytes is what a cache takes.
func (b *Backend) CacheBytes(s model.CacheShape) int64 {
	size, bytes := int64(b.cacheType.BlockSize()), int64(b.cacheType.BlockBytes())
	return 2 * int64(s.Layers) * int64(s.Blocks) * model.BlockTokens * int64(s.KVHeads) * int64(s.HeadDim) / size * bytes
}
