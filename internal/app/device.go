package app

import (
	"errors"

	"ragd/inference/cpu"
	"ragd/inference/model"
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

// urgency lets an encoder on the CPU give way to answers while nobody waits for it;
// nil for one on a device, which shares no threads with them.
func urgency(ops model.Ops) func(urgent bool) {
	b, ok := ops.(*cpu.Backend)
	if !ok {
		return nil
	}
	return func(urgent bool) { b.SetBackground(!urgent) }
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
