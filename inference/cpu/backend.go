// Package cpu is the backend of the host: model.Ops over the kernels of one
// instruction set, with the work of every operation split over threads.
//
// Results do not depend on the number of threads, on how a prompt was cut into
// pieces or on what else is in a batch: every output element is reduced in one
// order, whoever computes it.
package cpu

import (
	"fmt"

	"ragd/inference/cpu/kernel"
	"ragd/inference/model"
	"ragd/inference/quant"
)

// Config tunes a backend.
type Config struct {
	// Threads is the number of threads that compute, the caller's included; 0
	// means one for each CPU the process may use. Without meaning when there is a
	// Pool.
	Threads int
	// Pool is the threads to compute on, shared with other backends. It must
	// outlive the backend. Nil starts a pool of the backend's own.
	Pool *Pool
	// Background is the class to start in; see SetBackground.
	Background bool
	// Kernels is the kernel set; nil means the fastest one of this machine.
	Kernels *kernel.Set
	// Float32 turns every weight into float32 when it is loaded and keeps
	// activations, keys and values in float32: slow, large, and the yardstick
	// for the path in use.
	Float32 bool
	// CacheType is how KV caches keep keys and values: quant.F16 or quant.Q8_0. The
	// zero value stands for F16, or for F32 with Float32.
	CacheType quant.Type
}

// Backend is model.Ops on the host. It belongs to one goroutine at a time.
type Backend struct {
	set       *kernel.Set
	float32   bool
	cacheType quant.Type
	pool      *Pool
	ownPool   bool
	seat      *seat
	step      step
	tensors   []*tensor
	caches    []*cache
	offload   offload

	input    input       // the input of products, normalised and quantised
	hidden   tensor      // as wide as the model: products that are added to it
	gate, up tensor      // as wide as a feed-forward layer
	texts    packedKV    // keys and values of the texts of an encoder's step
	workers  []workspace // scratch of each thread

	// The tasks, kept so that running one allocates nothing.
	products  products
	rowTask   rowTask
	attention attentionTask
	ops       rowOps

	results [][]float32
	logits  []float32
}

var _ model.Ops = (*Backend)(nil)

// New starts a backend. Close ends it, and the threads unless they are shared.
func New(cfg Config) (*Backend, error) {
	if cfg.Kernels == nil {
		cfg.Kernels = kernel.Best()
	}
	cacheType, err := cfg.cacheType()
	if err != nil {
		return nil, err
	}
	pool := cfg.Pool
	if pool == nil {
		if pool, err = NewPool(cfg.Threads); err != nil {
			return nil, err
		}
	}
	b := &Backend{
		set:       cfg.Kernels,
		float32:   cfg.Float32,
		cacheType: cacheType,
		pool:      pool,
		ownPool:   cfg.Pool == nil,
		seat:      newSeat(pool.turns, cfg.Background),
		workers:   make([]workspace, pool.size),
	}
	b.products.b, b.rowTask.b, b.attention.b = b, b, b
	return b, nil
}

func (c *Config) cacheType() (quant.Type, error) {
	switch {
	case c.CacheType == quant.F16 || c.CacheType == quant.Q8_0:
		return c.CacheType, nil
	case c.CacheType == quant.FP8:
		return 0, fmt.Errorf("%w: a KV cache of type FP8 is for devices; the CPU keeps F16 or Q8_0", ErrLoad)
	case c.CacheType != 0:
		return 0, fmt.Errorf("%w: KV cache of type %s", ErrLoad, c.CacheType)
	case c.Float32:
		return quant.F32, nil
	}
	return quant.F16, nil
}

// Name says what computes: the kernel set and the number of threads.
func (b *Backend) Name() string {
	name := "cpu/" + b.set.Name
	if b.float32 {
		name += "/float32"
	}
	return fmt.Sprintf("%s, %d threads", name, b.pool.size)
}

// SetBackground moves the backend between the two classes: operations in the
// background give way to those of other backends on the same pool, within a turn
// at the pool, and still get a tenth of the time beside steps that never pause.
// Any goroutine may call it at any time, in the middle of a step too.
func (b *Backend) SetBackground(on bool) { b.seat.setBackground(on) }

// run does the items of t on the pool when it is the backend's turn.
func (b *Backend) run(t task, items int) { b.pool.run(b.seat, t, items) }

// Close frees the caches and stops the threads unless they are shared. The
// backend and everything it handed out must not be used afterwards.
func (b *Backend) Close() error {
	b.seat.end()
	var first error
	if b.ownPool {
		first = b.pool.Close()
	}
	for _, c := range b.caches {
		if err := c.free(); first == nil {
			first = err
		}
	}
	b.caches, b.tensors = nil, nil
	return first
}

// workspace is the scratch of one thread.
type workspace struct {
	query []float32    // query rows of one attention item
	wide  kv           // a block of keys and values widened from q8_0
	runs  []kernel.Run // cached rows to attend to
	part  partial      // over one section
	total partial      // over all of them
	_     [64]byte     // keeps the headers of two threads off one cache line
}

// grow returns s with n elements, keeping its memory when it is large enough.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
