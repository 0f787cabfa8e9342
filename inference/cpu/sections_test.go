package cpu

import (
	"math/rand/v2"
	"testing"

	"ragd/inference/model"
)

// A single query that sees one section more each time finds room for the results
// of all of them, however the room grew before.
func TestSectionsGrowOneByOne(t *testing.T) {
	const dim, heads, most = 8, 3, 8
	b := newBackend(t, Config{Threads: 8})
	blocks := make([]int32, most*sectionTokens/model.BlockTokens)
	for i := range blocks {
		blocks[i] = int32(i)
	}
	c, err := b.NewCache(model.CacheShape{Layers: 1, Blocks: len(blocks), KVHeads: heads, HeadDim: dim})
	if err != nil {
		t.Fatal(err)
	}
	q := random(rand.New(rand.NewPCG(3, 4)), heads*dim)
	for sections := 1; sections <= most; sections++ {
		b.Begin(model.Batch{{Tokens: []int32{0}, Start: sections*sectionTokens - 1, Blocks: blocks}})
		dst := b.filled(t, heads*dim, nil)
		b.Attend(dst, b.filled(t, heads*dim, q), c, 0, model.Attention{Heads: heads, KVHeads: heads, HeadDim: dim, Scale: 1})
		if got := len(b.attention.partials); got < sections*heads {
			t.Fatalf("%d sections of %d heads with room for %d", sections, heads, got)
		}
	}
}
