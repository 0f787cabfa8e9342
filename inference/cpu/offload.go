package cpu

import (
	"ragd/inference/cpu/kernel"
	"ragd/inference/model"
)

var _ model.OffloadOps = (*Backend)(nil)

// offload is the blocks of a cache that follow those of a device into its slots, where
// the host has a part of the model's layers: a block of the table is one block on both.
type offload struct{ from, slots *cache }

// Offload reserves memory for slots blocks of c.
func (b *Backend) Offload(c model.Cache, slots int) error {
	from := c.(*cache)
	shape := from.shape
	shape.Blocks = slots
	to, err := b.NewCache(shape)
	if err != nil {
		return err
	}
	b.offload = offload{from, to.(*cache)}
	return nil
}

// MoveBlocks makes the copies.
func (b *Backend) MoveBlocks(moves []model.BlockMove) error {
	o := &b.offload
	for _, m := range moves {
		if m.Save {
			copyBlock(o.slots, m.Slot, o.from, m.Block)
		} else {
			copyBlock(o.from, m.Block, o.slots, m.Slot)
		}
	}
	return nil
}

// copyBlock copies a block, all layers of it, between caches that differ in their number
// of blocks only.
func copyBlock(dst *cache, to int32, src *cache, from int32) {
	n := model.BlockTokens * src.shape.HeadDim
	for layer := range src.shape.Layers {
		for h := range src.shape.KVHeads {
			dst.kv.copy(dst.offset(layer, to, h), &src.kv, src.offset(layer, from, h), n)
		}
	}
}

// copy copies n keys and n values.
func (m *kv) copy(to int, src *kv, from, n int) {
	part(m.k16, to, src.k16, from, n)
	part(m.v16, to, src.v16, from, n)
	part(m.k32, to, src.k32, from, n)
	part(m.v32, to, src.v32, from, n)
	part(m.k8, to, src.k8, from, n)
	part(m.v8, to, src.v8, from, n)
	part(m.kd, to/kernel.BlockCols, src.kd, from/kernel.BlockCols, n/kernel.BlockCols)
	part(m.vd, to/kernel.BlockCols, src.vd, from/kernel.BlockCols, n/kernel.BlockCols)
}

// part copies n elements between slices, which are nil where the cache is of another
// type.
func part[T any](dst []T, to int, src []T, from, n int) {
	if dst != nil {
		copy(dst[to:to+n], src[from:from+n])
	}
}
