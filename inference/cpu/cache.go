package cpu

import (
	"fmt"
	"math"
	"unsafe"

	"ragd/inference/model"
)

// cache is a paged KV cache. All blocks of one layer and head follow each other,
// and in a block its BlockTokens keys: a sequence that got its blocks in a row is
// one run of memory, which the processor fetches ahead. Values lie the same way in
// their own half.
type cache struct {
	shape  model.CacheShape
	memory []byte
	kv     kv
}

// kv is keys and values, in half precision or in float32. Both have the same
// offsets.
type kv struct {
	k16, v16 []uint16
	k32, v32 []float32
	stride   int // elements from one position to the next
}

// NewCache reserves the whole cache in one allocation of anonymous memory.
func (b *Backend) NewCache(s model.CacheShape) (model.Cache, error) {
	size := 2.0 * float64(s.Layers) * float64(s.Blocks) * model.BlockTokens * float64(s.KVHeads) * float64(s.HeadDim) * float64(b.elemBytes())
	if s.Layers < 1 || s.Blocks < 1 || s.KVHeads < 1 || s.HeadDim < 1 || size > math.MaxInt/2 {
		return nil, fmt.Errorf("%w: KV cache of %d layers × %d blocks × %d heads × %d", ErrLoad, s.Layers, s.Blocks, s.KVHeads, s.HeadDim)
	}
	memory, err := reserve(int(size))
	if err != nil {
		return nil, fmt.Errorf("%w: KV cache of %d MiB: %w", ErrLoad, int(size)>>20, err)
	}
	c := &cache{shape: s, memory: memory, kv: kv{stride: s.HeadDim}}
	n := int(size) / 2 / b.elemBytes()
	if b.float32 {
		all := unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(memory))), 2*n)
		c.kv.k32, c.kv.v32 = all[:n], all[n:]
	} else {
		all := unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(memory))), 2*n)
		c.kv.k16, c.kv.v16 = all[:n], all[n:]
	}
	b.caches = append(b.caches, c)
	return c, nil
}

func (b *Backend) elemBytes() int {
	if b.float32 {
		return 4
	}
	return 2
}

// Bytes is the memory reserved.
func (c *cache) Bytes() int64 { return int64(len(c.memory)) }

func (c *cache) free() error {
	memory := c.memory
	c.memory, c.kv = nil, kv{}
	return release(memory)
}

// offset is where the rows of a block begin, for one layer and head.
func (c *cache) offset(layer int, block int32, head int) int {
	return ((layer*c.shape.KVHeads+head)*c.shape.Blocks + int(block)) * model.BlockTokens * c.shape.HeadDim
}

// put stores the key and value of one position and head.
func (b *Backend) put(m *kv, at int, k, v []float32) {
	if b.float32 {
		copy(m.k32[at:], k)
		copy(m.v32[at:], v)
		return
	}
	b.set.ToF16(m.k16[at:at+len(k)], k)
	b.set.ToF16(m.v16[at:at+len(v)], v)
}

// appendRows rotates queries and keys and writes keys and values into the cache.
type appendRows struct {
	cache    *cache
	layer    int
	q, k, v  *tensor
	rotation model.Rotation
}

// Append rotates q and k, and writes k and v at the step's positions.
func (b *Backend) Append(c model.Cache, layer int, q, k, v model.Tensor, r model.Rotation) {
	r.Rope.(*rope).fill(&b.step)
	b.ops.append = appendRows{c.(*cache), layer, q.(*tensor), k.(*tensor), v.(*tensor), r}
	b.eachRow(&b.ops.append, len(b.step.tokens))
}

func (o *appendRows) row(b *Backend, r int) {
	dim := o.cache.shape.HeadDim
	turn := o.rotation.Rope.(*rope)
	q, k, v := o.q.row(r), o.k.row(r), o.v.row(r)
	for at := 0; at < len(q); at += dim {
		b.prepareHead(q[at:at+dim], &o.rotation.QNorm, turn, r)
	}
	pos := int(b.step.positions[r])
	block := b.step.spans[b.step.spanOf[r]].blocks[pos/model.BlockTokens]
	for h := range o.cache.shape.KVHeads {
		head := k[h*dim : (h+1)*dim]
		b.prepareHead(head, &o.rotation.KNorm, turn, r)
		at := o.cache.offset(o.layer, block, h) + pos%model.BlockTokens*dim
		b.put(&o.cache.kv, at, head, v[h*dim:(h+1)*dim])
	}
}

// prepareHead normalises, where the family does, and rotates one head of a row.
func (b *Backend) prepareHead(head []float32, n *model.Norm, turn *rope, row int) {
	if n.Gain != nil {
		b.normalise(head, head, n)
	}
	b.rotate(turn, head, row)
}
