package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"ragd/inference/cpu"
	"ragd/inference/engine"
	"ragd/inference/gguf"
	"ragd/inference/model"
	"ragd/inference/quant"
	"ragd/inference/tokenizer"
)

// EngineConfig says what to measure.
type EngineConfig struct {
	Model   string // the GGUF file
	Threads int    // 0: all
	// CacheType is how keys and values are kept; the zero value stands for f16.
	CacheType quant.Type
	// Backend makes what computes; nil for the CPU. Shares are of the device's peak then,
	// where it is a PeakOps.
	Backend func() (model.Ops, error)
	Engine  engine.Config
	Tests   []string // empty: EngineTests
	Pairs   int      // repetitions of each test
	Peer    *LlamaBench
	Commit  string
	// Progress is told what runs; it must not be nil.
	Progress func(string)
}

func (c *EngineConfig) cacheType() quant.Type {
	if c.CacheType == 0 {
		return quant.F16
	}
	return c.CacheType
}

// cacheTokens is how much cache the engine gets: the deepest test beside the others.
const cacheTokens = 9216

// RunEngine measures the engine, and the peer in turn with it. Tests that do not
// fit the model's context are left out.
func RunEngine(ctx context.Context, cfg EngineConfig) (Report, error) {
	if len(cfg.Tests) == 0 {
		cfg.Tests = EngineTests
	}
	if err := CheckTests(cfg.Tests); err != nil {
		return Report{}, err
	}
	cfg.Progress("memory and arithmetic")
	machine, err := Measure(cfg.Threads)
	if err != nil {
		return Report{}, err
	}
	b, err := openEngine(ctx, cfg)
	if err != nil {
		return Report{}, err
	}
	machine.Device, machine.Peak = b.device, b.peak
	report := Report{Commit: cfg.Commit, Machine: machine}
	if typ := cfg.cacheType(); typ != quant.F16 {
		report.CacheType = strings.ToLower(typ.String())
	}
	for _, name := range cfg.Tests {
		t, err := b.test(ctx, name)
		if errors.Is(err, errTooDeep) {
			cfg.Progress(name + " does not fit the model's context")
			continue
		}
		if err != nil {
			return Report{}, errors.Join(fmt.Errorf("%s: %w", name, err), b.close())
		}
		report.Tests = append(report.Tests, t)
	}
	// A busy neighbour makes a machine look slow, never fast: the better of two
	// measurements, before and after, is nearer to the truth.
	again, err := Measure(cfg.Threads)
	report.Machine.GBs = max(machine.GBs, again.GBs)
	report.Machine.GOPs = max(machine.GOPs, again.GOPs)
	b.compareToPeak(&report)
	return report, errors.Join(err, b.close())
}

// compareToPeak fills in the shares of what the machine, or the device, can do.
func (b *engineBench) compareToPeak(r *Report) {
	memory, arithmetic := r.Machine.GBs, r.Machine.GOPs
	if b.device != "" {
		memory, arithmetic = b.devicePeak()
	}
	for i := range r.Tests {
		t := &r.Tests[i]
		s, ok := parseShape(t.Name)
		if share := b.ofPeak(s, t.Ragd.Median, memory, arithmetic); ok && share > 0 {
			t.OfPeak = &share
		}
	}
}

// devicePeak is what the device can do with this model's weights; 0 where not known.
func (b *engineBench) devicePeak() (memory, arithmetic float64) {
	switch {
	case b.peak == nil:
		return 0, 0
	case b.quantized:
		return b.peak.GBs, b.peak.Int8
	}
	return b.peak.GBs, b.peak.Float16
}

var errTooDeep = errors.New("longer than the model's context")

// engineBench is an engine under test.
type engineBench struct {
	cfg    EngineConfig
	engine *engine.Engine
	tok    tokenizer.Tokenizer
	model  model.Config
	recite *reciter
	device string // empty for the CPU
	peak   *Peak  // of the device; nil where it is not known
	// quantized says that most weights are: they are multiplied as int8.
	quantized bool
	run       int    // number of the run, for prompts and tenants of its own
	detail    string // of the test that runs
}

func openEngine(ctx context.Context, cfg EngineConfig) (*engineBench, error) {
	f, err := gguf.Open(cfg.Model)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := &engineBench{cfg: cfg}
	if b.tok, err = tokenizer.FromGGUF(f); err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.Model, err)
	}
	if t, ok := f.Tensor("blk.0.ffn_down.weight"); ok {
		b.quantized = t.Type.BlockSize() > 1
	}
	ops, err := b.backend()
	if err != nil {
		return nil, err
	}
	dec, err := model.LoadDecoder(ctx, f, ops, model.LoadConfig{Blocks: cacheTokens / model.BlockTokens})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", cfg.Model, err), ops.Close())
	}
	b.model = dec.Config()
	b.recite = &reciter{Decoder: dec}
	if b.engine, err = engine.New(b.recite, b.tok, cfg.Engine); err != nil {
		return nil, errors.Join(err, dec.Close())
	}
	if err := b.warmUp(ctx); err != nil {
		return nil, errors.Join(err, b.close())
	}
	return b, nil
}

// PeakOps is a device that knows what it could do at the most: memory read, int8 and
// float16 arithmetic, in the units of Peak.
type PeakOps interface {
	Peaks() (memory, int8, float16 float64, err error)
}

func (b *engineBench) backend() (model.Ops, error) {
	if b.cfg.Backend == nil {
		return cpu.New(cpu.Config{Threads: b.cfg.Threads, CacheType: b.cfg.CacheType})
	}
	ops, err := b.cfg.Backend()
	if err != nil {
		return nil, err
	}
	b.device = ops.Name()
	if device, ok := ops.(PeakOps); ok {
		var p Peak
		if p.GBs, p.Int8, p.Float16, err = device.Peaks(); err != nil {
			return nil, errors.Join(err, ops.Close())
		}
		b.peak = &p
	}
	return ops, nil
}

// warmUp lets scratch memory grow and pages come in.
func (b *engineBench) warmUp(ctx context.Context) error {
	b.cfg.Progress("warming up")
	_, err := b.answer(ctx, engine.Request{Tokens: b.random(128), MaxTokens: 16, IgnoreEOS: true, Tenant: "warm up"})
	return err
}

func (b *engineBench) close() error { return b.engine.Close(context.Background()) }

// test runs one test as often as asked.
func (b *engineBench) test(ctx context.Context, name string) (Test, error) {
	if s, ok := parseShape(name); ok {
		return b.shape(ctx, name, s)
	}
	measure, unit := b.self(name), "tok/s"
	if name == "warm_prefix" || name == "gap" {
		unit = "ms"
	}
	var p pairs
	b.detail = ""
	for i := range b.cfg.Pairs {
		b.cfg.Progress(fmt.Sprintf("%s, %d of %d", name, i+1, b.cfg.Pairs))
		value, ratio, err := measure(ctx)
		if err != nil {
			return Test{}, err
		}
		p.ragd = append(p.ragd, value)
		if ratio > 0 {
			p.ratio = append(p.ratio, ratio)
		}
	}
	t := p.test(name, unit)
	t.Detail = b.detail
	return t, nil
}

// shape runs a test of llama-bench, in turn with it.
func (b *engineBench) shape(ctx context.Context, name string, s shape) (Test, error) {
	if s.tokens()+1 > b.engine.Window() {
		return Test{}, errTooDeep
	}
	var p pairs
	for i := range b.cfg.Pairs {
		b.cfg.Progress(fmt.Sprintf("%s, %d of %d", name, i+1, b.cfg.Pairs))
		ours, err := b.speed(ctx, s)
		if err != nil {
			return Test{}, err
		}
		theirs := 0.0
		if b.cfg.Peer != nil {
			if theirs, err = b.cfg.Peer.measure(ctx, s); err != nil {
				return Test{}, err
			}
		}
		p.add(ours, theirs)
	}
	return p.test(name, "tok/s"), nil
}

// ofPeak is the share that decoding at a speed takes of the speed of memory (GB/s), or
// that prompts take of arithmetic (10⁹ operations a second); 0 where that is not known.
func (b *engineBench) ofPeak(s shape, speed, memory, arithmetic float64) float64 {
	c := b.model
	limit := arithmetic * 1e9
	if s.generate > 0 {
		limit = memory * 1e9
	}
	if limit <= 0 {
		return 0
	}
	if s.generate > 0 {
		seen := float64(s.depth) + float64(s.generate)/2
		bytes := float64(c.Weights) + seen*c.KVBytesPerToken(b.cfg.cacheType().ValueBytes())
		return speed * bytes / limit
	}
	heads := c.Heads * c.HeadDim
	weights := c.Width*(2*heads+2*c.KVHeads*c.HeadDim) + 3*c.Width*c.FeedForward
	seen := float64(s.depth) + float64(s.prompt)/2
	operations := float64(c.Layers) * (2*float64(weights) + 4*seen*float64(heads))
	return speed * operations / limit
}
