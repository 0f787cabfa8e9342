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
// values likewise.
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
	stride   int // elements from one position to the next
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
	c := &cache{shape: s, memory: memory, kv: kv{stride: s.HeadDim}}
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

// put stores keys and values of one position: those of a head, or of all.
func (m *kv) put(set *kernel.Set, at int, k, v []float32) {
	switch n := len(k); {
	case m.k8 != nil:
		d, blocks := at/kernel.BlockCols, n/kernel.BlockCols
		set.ToQ8(m.k8[at:at+n], m.kd[d:d+blocks], k)
		set.ToQ8(m.v8[at:at+n], m.vd[d:d+blocks], v)
	case m.k32 != nil:
		copy(m.k32[at:], k)
		copy(m.v32[at:], v)
	default:
		set.ToF16(m.k16[at:at+n], k)
		set.ToF16(m.v16[at:at+n], v)
	}
}

// widen sets the rows [from,to) of m, which is float32, to those of a block of src that
// begins at an offset in it.
func (m *kv) widen(set *kernel.Set, src *kv, at, from, to int) {
	dim := src.stride
	m.stride = dim
	m.k32, m.v32 = grow(m.k32, model.BlockTokens*dim), grow(m.v32, model.BlockTokens*dim)
	lo, hi := at+from*dim, at+to*dim
	d := src.kd[lo/kernel.BlockCols : hi/kernel.BlockCols]
	set.FromQ8(m.k32[from*dim:to*dim], src.k8[lo:hi], d)
	d = src.vd[lo/kernel.BlockCols : hi/kernel.BlockCols]
	set.FromQ8(m.v32[from*dim:to*dim], src.v8[lo:hi], d)
}

// fetch begins to bring n elements of q8_0 keys, and of values, into the cache.
func (m *kv) fetch(set *kernel.Set, at, n int) {
	d, e := at/kernel.BlockCols, (at+n)/kernel.BlockCols
	set.FetchQ8(m.k8[at:at+n], m.kd[d:e])
	set.FetchQ8(m.v8[at:at+n], m.vd[d:e])
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
		o.cache.kv.put(b.set, at, head, v[h*dim:(h+1)*dim])
	}
}

// prepareHead normalises, where the family does, and rotates one head of a row.
func (b *Backend) prepareHead(head []float32, n *model.Norm, turn *rope, row int) {
	if n.Gain != nil {
		b.normalise(head, head, n)
	}
	b.rotate(turn, head, row)
}
