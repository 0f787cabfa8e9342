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

// StepBytes is what the buffers of a decoder's steps take: twice their size, for one that
// grows lives beside the one that it replaces until its step is done.
func (b *Backend) StepBytes(c model.Config, s model.StepShape) int64 {
	rows, heads := int64(s.Rows), int64(c.Heads*c.HeadDim)
	widest := max(int64(c.FeedForward), heads, int64(c.Width))
	// Inputs of products: f16 with scales, and float32, or codes with scales and sums.
	halves, scales := halvesSize(s.Rows, int(widest))
	values := rows*widest + (halves+scales)/4
	// x and what is added to it, q and attention, k and v, gate and up.
	values += rows * 2 * (int64(c.Width) + heads + int64(c.KVHeads*c.HeadDim) + int64(c.FeedForward))
	values += b.sectionValues(c, s)
	// Logits with the candidates of their rows.
	chunks := int64(ceil(c.Vocab, bestChunk))
	values += int64(s.Logits) * (int64(c.Vocab) + 2*(2*chunks*maxBest+rowSums+maxBest) + chunkSums*chunks)
	// Tables: cosines and sines of two sets of frequencies, block tables, penalised tokens.
	values += rows*2*int64(c.RopeDim) + int64(s.Logits)*int64(ceil(s.Longest, model.BlockTokens)+model.MaxPenalised)
	return 2 * (4*values + firstChunk)
}

// sectionValues is the most that attention in sections keeps of each: a head's weighted
// values, its maximum and its sum. There are no sections where tiles are enough.
func (b *Backend) sectionValues(c model.Config, s model.StepShape) int64 {
	queries := min(int64(s.Rows*c.Heads), int64(b.splitBelow*largestTile))
	return queries * int64(ceil(s.Longest, attendSection)) * int64(c.HeadDim+2)
}
