//go:build cuda && cgo

package cuda

import (
	"fmt"
	"math"

	"ragd/inference/cuda/cudrv"
	"ragd/inference/model"
	"ragd/inference/quant"
)

// cache is a paged KV cache: keys, then values, a block of one layer and head holding
// BlockTokens positions that follow each other. In q8_0 and fp8 the codes of keys are
// followed by their scales, and those of values likewise.
type cache struct {
	shape  model.CacheShape
	format *cacheFormat
	bytes  int64
	planes []cudrv.Ptr // as the kernels take them: keys, values, or each with its scales
	sizes  []int64     // bytes of a block of one layer in each plane
}

func (c *cache) Bytes() int64 { return c.bytes }

// cacheFormat is how a cache keeps its values.
type cacheFormat struct {
	name  string // of its kernels
	block int    // values that share a scale
	// planes are the bytes that a block of values takes in the planes of keys, and in
	// those of values.
	planes []int
	// tensor are the sizes of heads that attention on tensor cores is compiled for.
	tensor []int
}

var cacheFormats = map[quant.Type]*cacheFormat{
	quant.F16:  {name: "f16", block: 1, planes: []int{2}, tensor: []int{32, 64, 128, 256}},
	quant.Q8_0: {name: "q8_0", block: 32, planes: []int{32, 2}, tensor: []int{64, 128, 256}},
	quant.FP8:  {name: "fp8", block: 32, planes: []int{32, 1}, tensor: []int{64, 128, 256}},
}

// textCache is what encoders keep the texts of a step in.
var textCache = cacheFormats[quant.F16]

// maxHeadDim is the largest head that attention takes: a thread for each dimension.
const maxHeadDim = 256

// NewCache reserves the whole cache.
func (b *Backend) NewCache(s model.CacheShape) (model.Cache, error) {
	f := cacheFormats[b.cacheType]
	if f == nil {
		return nil, fmt.Errorf("%w: KV cache of type %s", ErrLoad, b.cacheType)
	}
	values := 2.0 * float64(s.Layers) * float64(s.Blocks) * model.BlockTokens * float64(s.KVHeads) * float64(s.HeadDim)
	if s.Layers < 1 || s.Blocks < 1 || s.KVHeads < 1 || s.HeadDim < 1 || values > math.MaxInt/4 || s.Blocks > math.MaxInt32/model.BlockTokens {
		return nil, fmt.Errorf("%w: KV cache of %d layers × %d blocks × %d heads × %d", ErrLoad, s.Layers, s.Blocks, s.KVHeads, s.HeadDim)
	}
	if s.HeadDim > maxHeadDim || s.HeadDim%2 != 0 || s.HeadDim%f.block != 0 {
		return nil, fmt.Errorf("%w: heads of %d dimensions in a cache of type %s (even, multiples of %d, up to %d)", ErrLoad, s.HeadDim, b.cacheType, f.block, maxHeadDim)
	}
	c := &cache{shape: s, format: f, sizes: f.sizes(s), bytes: b.CacheBytes(s)}
	at, err := b.alloc(c.bytes)
	if err != nil {
		return nil, fmt.Errorf("%w: KV cache: %w", ErrLoad, err)
	}
	for _, block := range c.sizes {
		c.planes = append(c.planes, at)
		at += cudrv.Ptr(block * int64(s.Layers) * int64(s.Blocks))
	}
	return c, nil
}

// sizes are the bytes of a block of one layer in each plane.
func (f *cacheFormat) sizes(s model.CacheShape) []int64 {
	var list []int64
	for range 2 { // keys, values
		for _, size := range f.planes {
			list = append(list, int64(s.KVHeads*model.BlockTokens*(s.HeadDim/f.block)*size))
		}
	}
	return list
}

// layer is where the planes of a layer begin.
func (c *cache) layer(l int) []cudrv.Ptr {
	at := make([]cudrv.Ptr, len(c.planes))
	for i, p := range c.planes {
		at[i] = p + cudrv.Ptr(int64(l)*int64(c.shape.Blocks)*c.sizes[i])
	}
	return at
}
