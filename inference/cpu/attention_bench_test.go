package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"ragd/inference/model"
)

// BenchmarkDecodeAttention is all attention of a decode step of SmolLM2-135M behind 2,048
// tokens, out of memory: keys and values of 47 MB, whose blocks follow each other as
// after a start, or lie as if many sequences had come and gone.
func BenchmarkDecodeAttention(b *testing.B) {
	const layers, depth, room = 30, 2048, 512
	a := model.Attention{Heads: 9, KVHeads: 3, HeadDim: 64, Scale: 0.125}
	for _, threads := range []int{1, 2} {
		back := newBackend(b, Config{Threads: threads})
		made, err := back.NewCache(model.CacheShape{Layers: layers, Blocks: room, KVHeads: a.KVHeads, HeadDim: a.HeadDim})
		if err != nil {
			b.Fatal(err)
		}
		c, r := made.(*cache), rand.New(rand.NewPCG(5, 6))
		back.set.ToF16(c.kv.k16, random(r, len(c.kv.k16)))
		back.set.ToF16(c.kv.v16, random(r, len(c.kv.v16)))
		for _, scattered := range []bool{false, true} {
			blocks := make([]int32, depth/model.BlockTokens)
			for i, p := range r.Perm(room)[:len(blocks)] {
				blocks[i] = int32(i)
				if scattered {
					blocks[i] = int32(p)
				}
			}
			back.Begin(model.Batch{{Tokens: make([]int32, 1), Start: depth - 1, Blocks: blocks}})
			q, dst := back.filled(b, a.Heads*a.HeadDim, random(r, a.Heads*a.HeadDim)), back.filled(b, a.Heads*a.HeadDim, nil)
			b.Run(fmt.Sprintf("threads=%d/scattered=%v", threads, scattered), func(b *testing.B) {
				b.SetBytes(layers * 2 * depth * int64(a.KVHeads*a.HeadDim) * 2)
				for b.Loop() {
					for layer := range layers {
						back.Attend(dst, q, c, layer, a)
					}
				}
			})
		}
	}
}
