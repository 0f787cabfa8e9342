//go:build cuda && cgo

package cuda

import (
	"fmt"

	"ragd/inference/cuda/cudrv"
	"ragd/inference/model"
)

// Attention's sizes, which kernel/attend.cu has too.
const (
	attendChunk   = 64
	attendSection = 256
	largestTile   = 16 // query rows
)

// tiling is attention's items: tiles of query rows of a span that share a key/value
// head, so heads of a group follow each other and then positions.
type tiling struct {
	tile  int // query rows of a tile
	count int
	dev   cudrv.Ptr // {span, first query row}
}

// tilesFor plans the step's tiles for groups of query heads.
func (b *Backend) tilesFor(group int) tiling {
	s := &b.step
	if t, ok := s.tiles[group]; ok {
		return t
	}
	most := 0
	for i := 0; i < len(s.spans); i += 4 {
		most = max(most, int(s.spans[i+1])*group)
	}
	t := tiling{tile: largestTile}
	if most <= 8 {
		t.tile = max(4, ceil(most, 4)*4)
	}
	var list []int32
	for i := 0; i < len(s.spans); i += 4 {
		for at := 0; at < int(s.spans[i+1])*group; at += t.tile {
			list = append(list, int32(i/4), int32(at))
		}
	}
	t.count = len(list) / 2
	t.dev = stage(b, list)
	s.tiles[group] = t
	return t
}

// defaultSplitBelow is how many thread blocks without a split are too few for a device:
// then each section of the positions gets blocks of its own.
const defaultSplitBelow = 512

// Attend sets dst to causal attention of q over the cache.
func (b *Backend) Attend(dst, q model.Tensor, c model.Cache, layer int, a model.Attention) {
	kv := c.(*cache)
	b.attend(dst.(*tensor), q.(*tensor), kv.format, kv.layer(layer), a)
}

func (b *Backend) attend(dst, q *tensor, f *cacheFormat, planes []cudrv.Ptr, a model.Attention) {
	if a.HeadDim > maxHeadDim {
		b.keep(fmt.Errorf("%w: heads of %d dimensions (up to %d)", ErrLoad, a.HeadDim, maxHeadDim))
		return
	}
	s, t := &b.step, b.tilesFor(a.Heads/a.KVHeads)
	sections, partial := 1, cudrv.Ptr(0)
	if n := ceil(s.longest, attendSection); n > 1 && t.count*a.KVHeads < b.splitBelow {
		sections = n
		partial = b.reserve(&b.partial, 4*int64(s.rows)*int64(a.Heads)*int64(n)*int64(a.HeadDim+2))
	}
	causal := 0
	if s.causal {
		causal = 1
	}
	threads := max(64, ceil(a.HeadDim, 32)*32)
	b.launch(b.kernels[fmt.Sprintf("attend_%s_%d", f.name, t.tile)], cudrv.Grid{
		X: t.count, Y: a.KVHeads, Z: sections, Threads: threads, Shared: 4 * t.tile * (a.HeadDim + attendChunk + 3),
	}).ptrs(dst.buf.ptr, partial, q.buf.ptr).ptrs(planes...).ptrs(s.dev.tables, s.dev.spans, t.dev).
		ints(a.Heads, a.KVHeads, a.HeadDim).floats(a.Scale, a.SoftCap).ints(a.Window, causal)
	if sections > 1 {
		b.launch(b.kernels["attend_join"], cudrv.Grid{X: s.rows, Y: a.Heads, Z: 1, Threads: threads}).
			ptrs(dst.buf.ptr, partial, s.dev.ends).ints(sections, a.Window, a.HeadDim)
	}
}
