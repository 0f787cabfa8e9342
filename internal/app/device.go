package app

import (
	"errors"
	"fmt"

	"ragd/inference/cpu"
	"ragd/inference/kvcache"
	"ragd/inference/model"
	"ragd/inference/quant"
	"ragd/internal/answer"
	"ragd/internal/config"
)

// errNotBuilt says that this binary was built without a device backend.
var errNotBuilt = errors.New("this build computes on the CPU only: `make build-cuda` makes one for NVIDIA GPUs")

// newBackend starts what a model computes on: the device that the settings name, or
// the CPU as host says. With "auto" a device that cannot be used is no error.
func (a *App) newBackend(host cpu.Config) (model.Ops, error) {
	i := a.cfg.Inference
	if i.Device == config.DeviceCPU {
		return cpu.New(host)
	}
	ops, err := openDevice(i, a.deviceLost)
	if err == nil {
		return ops, nil
	}
	if i.Device != config.DeviceAuto {
		return nil, err
	}
	if !errors.Is(err, errNotBuilt) {
		a.log.Info("computing on the CPU", "reason", err.Error())
	}
	return cpu.New(host)
}

// OpenDevice is the device of a name, "cuda:N", for who measures it. There is no falling
// back to the CPU.
func OpenDevice(cfg config.Config, name string) (model.Ops, error) {
	i := cfg.Inference
	i.Device = name
	if len(i.DeviceNumbers()) != 1 {
		return nil, fmt.Errorf("%q is no device: cuda:0 is the first GPU", name)
	}
	ops, err := openDevice(i, nil)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return ops, nil
}

// urgency lets an encoder on the CPU give way to answers while nobody waits for it;
// nil for one on a device, which shares no threads with them.
func urgency(ops model.Ops) func(urgent bool) {
	b, ok := ops.(*cpu.Backend)
	if !ok {
		return nil
	}
	return func(urgent bool) { b.SetBackground(!urgent) }
}

// offloadSlots are the blocks of KV cache that host memory has room for besides: what the
// settings say and the backend can do.
func (a *App) offloadSlots(ops model.Ops) int {
	i := a.cfg.Inference
	if _, device := ops.(model.RoomOps); !device {
		if i.KVOffloadTokens > 0 {
			a.log.Info("inference.kv_offload_tokens is for GPUs", "backend", ops.Name())
		}
		return 0
	}
	return kvcache.BlocksOf(i.KVOffloadTokens)
}

// CacheType is how the settings have keys and values kept, on every backend.
func CacheType(i config.Inference) quant.Type {
	switch i.KVCacheType {
	case config.CacheQ8:
		return quant.Q8_0
	case config.CacheFP8:
		return quant.FP8
	}
	return quant.F16
}

// deviceLost ends Serve: the models lived on the device, and a new process loads them
// again. Answers that were running have failed.
func (a *App) deviceLost(err error) {
	a.log.Error("the device is lost", "error", err.Error())
	select {
	case a.lost <- err:
	default: // another model has told already
	}
}

// unavailable gives the failure of a device its code.
func unavailable(err error) error {
	if !deviceFailed(err) {
		return err
	}
	return &answer.Error{Code: answer.Unavailable, Message: "the device that models run on failed", Err: err}
}
