// Package cpu is the backend of the host: model.Ops over the kernels of one
// instruction set, with the work of every operation split over threads.
//
// Results do not depend on the number of threads, on how a prompt was cut into
// pieces or on what else is in a batch: every output element is reduced in one
// order, whoever computes it.
package cpu

import (
	"fmt"
	"runtime"

	"ragd/inference/cpu/kernel"
	"ragd/inference/model"
)

// Config tunes a backend.
type Config struct {
	// Threads is the number of threads that compute, the caller's included; 0
	// means one for each CPU the process may use.
	Threads int
	// Kernels is the kernel set; nil means the fastest one of this machine.
	Kernels *kernel.Set
	// Float32 turns every weight into float32 when it is loaded and keeps
	// activations, keys and values in float32: slow, large, and the yardstick
	// for the path in use.
	Float32 bool
}

// Backend is model.Ops on the host. It belongs to one goroutine at a time.
type Backend struct {
	set     *kernel.Set
	float32 bool
	pool    *pool
	step    step
	tensors []*tensor
	caches  []*cache

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

// New starts a backend. Close stops its threads.
func New(cfg Config) (*Backend, error) {
	if cfg.Threads < 0 || cfg.Threads > maxThreads {
		return nil, fmt.Errorf("cpu: %d threads (0 to %d)", cfg.Threads, maxThreads)
	}
	if cfg.Threads == 0 {
		cfg.Threads = min(runtime.GOMAXPROCS(0), maxThreads)
	}
	if cfg.Kernels == nil {
		cfg.Kernels = kernel.Best()
	}
	b := &Backend{
		set:     cfg.Kernels,
		float32: cfg.Float32,
		pool:    newPool(cfg.Threads),
		workers: make([]workspace, cfg.Threads),
	}
	b.products.b, b.rowTask.b, b.attention.b = b, b, b
	return b, nil
}

const maxThreads = 1024

// Name says what computes: the kernel set and the number of threads.
func (b *Backend) Name() string {
	name := "cpu/" + b.set.Name
	if b.float32 {
		name += "/float32"
	}
	return fmt.Sprintf("%s, %d threads", name, b.pool.size)
}

// Close stops the threads and frees the caches. The backend and everything it
// handed out must not be used afterwards.
func (b *Backend) Close() error {
	b.pool.close()
	var first error
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
	query []float32 // query rows of one attention item
	part  partial   // over one section
	total partial   // over all of them
	_     [64]byte  // keeps the headers of two threads off one cache line
}

// grow returns s with n elements, keeping its memory when it is large enough.
func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
