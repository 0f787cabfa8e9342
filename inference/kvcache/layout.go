package kvcache

import (
	"math"

	"ragd/inference/model"
)

// Layout is what decides how much memory a token takes in the cache.
type Layout struct {
	Layers  int
	KVHeads int
	HeadDim int
	// Bytes is the size of one element: 2 for f16, 34.0/32 for q8_0.
	Bytes float64
}

// LayoutOf is the layout of a model whose cache elements take elemBytes bytes.
func LayoutOf(c model.Config, elemBytes float64) Layout {
	return Layout{Layers: c.Layers, KVHeads: c.KVHeads, HeadDim: c.HeadDim, Bytes: elemBytes}
}

// TokenBytes is layers × kv_heads × head_dim × 2 × bytes: the keys and the
// values of one token.
func (l Layout) TokenBytes() float64 {
	return float64(l.Layers) * float64(l.KVHeads) * float64(l.HeadDim) * 2 * l.Bytes
}

// BlockBytes is the size of a block of model.BlockTokens tokens in bytes,
// rounded up.
func (l Layout) BlockBytes() int64 {
	return int64(math.Ceil(l.TokenBytes() * model.BlockTokens))
}

// BlocksFor is how many whole blocks fit into a number of bytes.
func (l Layout) BlocksFor(bytes int64) int {
	size := l.BlockBytes()
	if size <= 0 || bytes <= 0 {
		return 0
	}
	return int(bytes / size)
}

// BlocksOf is how many blocks a sequence of that many tokens takes.
func BlocksOf(tokens int) int {
	return (tokens + model.BlockTokens - 1) / model.BlockTokens
}
