//go:build cuda && cgo

package cuda

import (
	"errors"
	"fmt"

	"ragd/inference/cuda/cudrv"
	"ragd/inference/cuda/kernel"
	"ragd/inference/model"
	"ragd/inference/quant"
)

// Config tunes a backend.
type Config struct {
	// Library is the path of the driver library; empty for the system's.
	Library string
	// Device is the number of the device.
	Device int
	// CacheType is how KV caches keep their values: quant.F16, which the zero value stands
	// for too, or quant.Q8_0.
	CacheType quant.Type
	// Lost, if set, is called once when the device fails in a way that only a new
	// backend can follow. Steps fail from then on.
	Lost func(error)
}

// Backend is model.Ops on a device. It belongs to one goroutine at a time.
type Backend struct {
	device    *cudrv.Device
	lost      func(error) // nil once it was called
	modules   []cudrv.Module
	stream    cudrv.Stream
	kernels   map[string]cudrv.Function
	cacheType quant.Type

	step     step
	plan     plan
	staging  staging
	replay   replay
	offload  offload
	incoming incoming
	tensors  []*tensor
	retired  []cudrv.Ptr // replaced while the plan may use them
	err      error       // the first of this step

	input, rest      input // of products; of those of finer rows
	restOut          buffer
	hidden, gate, up tensor // scratch
	partial          buffer // sections of attention
	textKV           buffer // keys and values of the texts of an encoder's step
	output           buffer // results on the device
	results          *cudrv.Pinned
	rows             [][]float32
	keys             [2]buffer // the largest logits, in rounds
	sums             buffer
	best             []model.Best
	bestWidth        int     // of the rows they are of
	choices, seen    []int32 // as they are staged

	splitBelow int  // see defaultSplitBelow
	tensor     bool // there are kernels for tensor cores
	tensorFrom int  // see defaultTensorFrom
	manyFrom   int  // see defaultManyFrom
	halves     bool // see halvesPay
}

var _ model.Ops = (*Backend)(nil)

// fixedKernels are those that do not depend on a weight's format.
var fixedKernels = []string{
	"norm_rows", "add_norm_rows", "activate_rows", "pool_rows", "rest_rows", "add_rows",
	"append_f16", "attend_f16_4", "attend_f16_8", "attend_f16_16", "append_q8_0", "attend_q8_0_4", "attend_q8_0_8", "attend_q8_0_16",
	"append_fp8", "attend_fp8_4", "attend_fp8_8", "attend_fp8_16", "attend_join",
	"best_logits", "join_sums",
}

// New opens the driver and makes a context on the device. Failures match
// cudrv.ErrUnavailable where there is no driver.
func New(cfg Config) (*Backend, error) {
	if err := cudrv.Open(cfg.Library); err != nil {
		return nil, err
	}
	d, err := cudrv.NewDevice(cfg.Device)
	if err != nil {
		return nil, fmt.Errorf("device %d: %w", cfg.Device, err)
	}
	b := &Backend{device: d, kernels: make(map[string]cudrv.Function), splitBelow: defaultSplitBelow, tensorFrom: defaultTensorFrom, manyFrom: defaultManyFrom, lost: cfg.Lost}
	if b.cacheType = cfg.CacheType; b.cacheType == quant.F32 {
		b.cacheType = quant.F16
	}
	if err := d.Do(b.open); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return b, nil
}

// open runs on the device's thread.
func (b *Backend) open() (err error) {
	info := b.device.Info()
	b.tensor, b.halves = info.Major >= kernel.TensorMajor, halvesPay(info.Major, info.Minor)
	images := []string{kernel.PTX}
	if b.tensor {
		images = append(images, kernel.HalfPTX, kernel.AttendTensorPTX)
	}
	if b.tensor && !b.halves {
		images = append(images, kernel.TensorPTX)
	}
	for _, ptx := range images {
		m, err := cudrv.LoadPTX(ptx)
		if err != nil {
			return err
		}
		b.modules = append(b.modules, m)
	}
	if b.stream, err = cudrv.NewStream(); err != nil {
		return err
	}
	for _, name := range fixedKernels {
		if _, err := b.find(name); err != nil {
			return err
		}
	}
	if b.tensor {
		return b.findTensorAttention()
	}
	return nil
}

// find looks a kernel up, on the device's thread.
func (b *Backend) find(name string) (cudrv.Function, error) {
	if f, ok := b.kernels[name]; ok {
		return f, nil
	}
	var f cudrv.Function
	var err error
	for _, m := range b.modules {
		if f, err = m.Function(name); err == nil {
			b.kernels[name] = f
			break
		}
	}
	return f, err
}

// Name says what computes: the device.
func (b *Backend) Name() string { return b.device.Info().String() }

// Close frees everything: destroying the context gives all of its memory back.
// The backend and what it handed out must not be used afterwards.
func (b *Backend) Close() error {
	// A lost context answers this with an error and is destroyed all the same.
	_ = b.device.Do(func() error {
		return errors.Join(b.replay.free(), b.results.Free(), b.incoming.memory.Free(), b.staging.free(), b.offload.free())
	})
	b.results = nil
	return b.device.Close()
}

// keep remembers the first error of a step.
func (b *Backend) keep(err error) {
	if b.err == nil {
		b.err = err
	}
}

// buffer is device memory that grows.
type buffer struct {
	ptr  cudrv.Ptr
	size int64
}

// reserve makes room for size bytes; what was there is lost when it moves.
func (b *Backend) reserve(m *buffer, size int64) cudrv.Ptr {
	if m.size >= size {
		return m.ptr
	}
	if m.ptr != 0 {
		b.retired = append(b.retired, m.ptr)
	}
	*m = buffer{}
	p, err := b.alloc(size)
	if err != nil {
		b.keep(err)
		return 0
	}
	*m = buffer{p, size}
	return p
}

// alloc reserves device memory; a refusal says how much was free.
func (b *Backend) alloc(size int64) (p cudrv.Ptr, err error) {
	err = b.device.Do(func() error {
		p, err = cudrv.Alloc(size)
		if errors.Is(err, cudrv.ErrMemory) {
			free, total, _ := cudrv.MemoryInfo()
			return fmt.Errorf("%w: %.1f MiB asked for, %.1f of %.1f MiB free", err, mib(size), mib(free), mib(total))
		}
		return err
	})
	return p, err
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }
