package cpu

import (
	"errors"
	"fmt"
	"math"
	"unsafe"

	"ragd/inference/cpu/kernel"
	"ragd/inference/model"
	"ragd/inference/quant"
)

// cache is a paged KV cache. All blocks of one layer and head follow each other,
// and in a block its BlockTokens keys: a sequence that got its blocks in a row is
// one run of memory, which the processor fetches ahead. Values lie the same way in
// their own half; in q8_0 the codes of keys are followed by their scales, and those of
// values likewise. A block's keys have the positions of one dimension side by side,
// its values the dimensions of one position: see kernel.Set.AttendTile.
type cache struct {
	shape  model.CacheShape
	memory []byte
	kv     kv
}

// kv is keys and values, in half precision, in float32 or in q8_0. All have the same
// offsets; a scale has that of its block's first code over the size of a block.
type kv struct {
	k16, v16 []uint16
	k32, v32 []float32
	k8, v8   []int8
	kd, vd   []uint16
}

// NewCache reserves the whole cache in one allocation of anonymous memory, with its
// pages: the first steps would wait for them otherwise.
func (b *Backend) NewCache(s model.CacheShape) (model.Cache, error) {
	values := 2.0 * float64(s.Layers) * float64(s.Blocks) * model.BlockTokens * float64(s.KVHeads) * float64(s.HeadDim)
	if s.Layers < 1 || s.Blocks < 1 || s.KVHeads < 1 || s.HeadDim < 1 || values > math.MaxInt/8 {
		return nil, fmt.Errorf("%w: KV cache of %d layers × %d blocks × %d heads × %d", ErrLoad, s.Layers, s.Blocks, s.KVHeads, s.HeadDim)
	}
	size, bytes := b.cacheType.BlockSize(), b.cacheType.BlockBytes()
	if s.HeadDim%size != 0 {
		return nil, fmt.Errorf("%w: heads of %d dimensions in a KV cache of type %s (multiples of %d)", ErrLoad, s.HeadDim, b.cacheType, size)
	}
	half := int(values) / 2 / size * bytes
	memory, err := reserve(2 * half)
	if err == nil {
		err = b.populate(memory)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w: KV cache of %d MiB: %w", ErrLoad, 2*half>>20, err), release(memory))
	}
	c := &cache{shape: s, memory: memory}
	c.kv.lay(b.cacheType, memory[:half], memory[half:])
	b.caches = append(b.caches, c)
	return c, nil
}

// lay makes memory the keys and values.
func (m *kv) lay(t quant.Type, keys, values []byte) {
	switch t {
	case quant.Q8_0:
		codes := len(keys) / t.BlockBytes() * t.BlockSize()
		m.k8, m.v8 = as[int8](keys[:codes]), as[int8](values[:codes])
		m.kd, m.vd = as[uint16](keys[codes:]), as[uint16](values[codes:])
	case quant.F32:
		m.k32, m.v32 = as[float32](keys), as[float32](values)
	default:
		m.k16, m.v16 = as[uint16](keys), as[uint16](values)
	}
}

// as is memory as elements of T, which it is aligned for.
func as[T any](memory []byte) []T {
	p := (*T)(unsafe.Pointer(unsafe.SliceData(memory)))
	return unsafe.Slice(p, len(memory)/int(unsafe.Sizeof(*p)))
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

// put stores the key and value of a head at place j of the block at an offset. The key
// is converted where the value comes to lie, and goes to its column from there.
func (m *kv) put(set *kernel.Set, block, j int, k, v []float32) {
	dim := len(k)
	lo, hi := block+j*dim, block+(j+1)*dim
	switch {
	case m.k8 != nil:
		codes, scales := m.v8[lo:hi], m.vd[lo/kernel.BlockCols:hi/kernel.BlockCols]
		set.ToQ8(codes, scales, k)
		column(m.k8[block+j:], codes)
		column(m.kd[block/kernel.BlockCols+j:], scales)
		set.ToQ8(codes, scales, v)
	case m.k32 != nil:
		column(m.k32[block+j:], k)
		copy(m.v32[lo:hi], v)
	default:
		row := m.v16[lo:hi]
		set.ToF16(row, k)
		column(m.k16[block+j:], row)
		set.ToF16(row, v)
	}
}

// column writes x down a column of a block of keys.
func column[T any](dst, x []T) {
	for i, v := range x {
		dst[i*model.BlockTokens] = v
	}
}

// widen sets the block of size elements at dst in m, which is float32, to the one at an
// offset in src.
func (m *kv) widen(set *kernel.Set, src *kv, dst, at, size int) {
	k, v := m.k32[dst:dst+size], m.v32[dst:dst+size]
	switch {
	case src.k8 != nil:
		d, e := at/kernel.BlockCols, (at+size)/kernel.BlockCols
		set.FromQ8Keys(k, src.k8[at:at+size], src.kd[d:e])
		set.FromQ8(v, src.v8[at:at+size], src.vd[d:e])
	case src.k32 != nil:
		copy(k, src.k32[at:at+size])
		copy(v, src.v32[at:at+size])
	default:
		set.FromF16(k, src.k16[at:at+size])
		set.FromF16(v, src.v16[at:at+size])
	}
}

// appendRows rotates queries and keys and writes keys and values into the cache.
type appendRows struct {
	cache    *cache
	layer    int
	q, k, v  *tensor
	rotation model.Rotation
}

// appendChunk is how many rows a thread appends: those of a block, mostly, because the
// keys of two positions of a block share cache lines.
const appendChunk = model.BlockTokens

// Append rotates q and k, and writes k and v at the step's positions.
func (b *Backend) Append(c model.Cache, layer int, q, k, v model.Tensor, r model.Rotation) {
	r.Rope.(*rope).fill(&b.step)
	b.ops.append = appendRows{c.(*cache), layer, q.(*tensor), k.(*tensor), v.(*tensor), r}
	b.eachRows(&b.ops.append, len(b.step.tokens), appendChunk)
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
		o.cache.kv.put(b.set, o.cache.offset(o.layer, block, h), pos%model.BlockTokens, head, v[h*dim:(h+1)*dim])
	}
}

// prepareHead normalises, where the family does, and rotates one head of a row.
func (b *Backend) prepareHead(head []float32, n *model.Norm, turn *rope, row int) {
	if n.Gain != nil {
		b.normalise(head, head, n)
	}
	b.rotate(turn, head, row)
}
