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
	most  int       // query rows of a span
}

// groups are query heads that share a key/value head, and what computes them.
type groups struct {
	size   int
	tensor bool
}

// tilesFor plans the step's tiles.
func (b *Backend) tilesFor(g groups) tiling {
	s, group := &b.step, g.size
	if t, ok := s.tiles[g]; ok {
		return t
	}
	t := tiling{tile: largestTile}
	for i := 0; i < len(s.spans); i += 4 {
		t.most = max(t.most, int(s.spans[i+1])*group)
	}
	switch {
	case g.tensor:
		t.tile = tensorTile
	case t.most <= 8:
		t.tile = max(4, ceil(t.most, 4)*4)
	}
	var list []int32
	for i := 0; i < len(s.spans); i += 4 {
		for at := 0; at < int(s.spans[i+1])*group; at += t.tile {
			list = append(list, int32(i/4), int32(at))
		}
	}
	t.count = len(list) / 2
	t.dev = stage(b, list)
	s.tiles[g] = t
	return t
}

// defaultSplitBelow is how many thread blocks without a split are too few for a device:
// then each section of the positions gets blocks of its own. What sections leave to be
// joined is bounded: rows and heads may be as many as these blocks have in largestTile.
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
	s := &b.step
	name, g, t := b.attendLaunch(f, a)
	partial := cudrv.Ptr(0)
	few := g.X*g.Y < b.splitBelow && s.rows*a.Heads <= b.splitBelow*largestTile
	if n := ceil(s.longest, attendSection); n > 1 && few {
		g.Z = n
		partial = b.reserve(&b.partial, 4*int64(s.rows)*int64(a.Heads)*int64(n)*int64(a.HeadDim+2))
	}
	causal := 0
	if s.causal {
		causal = 1
	}
	b.launch(b.kernels[name], g).ptrs(dst.buf.ptr, partial, q.buf.ptr).ptrs(planes...).ptrs(s.dev.tables, s.dev.spans, t.dev).
		ints(a.Heads, a.KVHeads, a.HeadDim).floats(a.Scale, a.SoftCap).ints(a.Window, causal)
	if g.Z > 1 {
		b.launch(b.kernels["attend_join"], cudrv.Grid{X: s.rows, Y: a.Heads, Z: 1, Threads: headThreads(a.HeadDim)}).
			ptrs(dst.buf.ptr, partial, s.dev.ends).ints(g.Z, a.Window, a.HeadDim)
	}
}

// headThreads has a thread for each dimension of a head, in whole warps.
func headThreads(dim int) int { return max(64, ceil(dim, 32)*32) }

// attendLaunch chooses the kernel, its tiles and the shape of its launch for one section.
func (b *Backend) attendLaunch(f *cacheFormat, a model.Attention) (string, cudrv.Grid, tiling) {
	group := a.Heads / a.KVHeads
	if name := b.tensorAttention(f, a.HeadDim); name != "" {
		t := b.tilesFor(groups{group, true})
		return name, cudrv.Grid{X: t.count, Y: a.KVHeads, Z: 1, Threads: tensorAttendThreads, Shared: tensorAttendShared(a.HeadDim, t.most)}, t
	}
	t := b.tilesFor(groups{group, false})
	return fmt.Sprintf("attend_%s_%d", f.name, t.tile), cudrv.Grid{
		X: t.count, Y: a.KVHeads, Z: 1, Threads: headThreads(a.HeadDim), Shared: 4 * t.tile * (a.HeadDim + attendChunk + 3),
	}, t
}
