//go:build !cuda || !cgo

package app

import (
	"ragd/inference/model"
	"ragd/internal/config"
)

func openDevice(config.Inference, func(error)) (model.Ops, error) { return nil, errNotBuilt }

// deviceFailed reports whether an answer failed because of the device.
func deviceFailed(error) bool { return false }

func checkDevice(i config.Inference) Check {
	c := Check{Name: "gpu", Found: "not used: this build computes on the CPU"}
	if _, wanted := i.DeviceNumber(); wanted {
		c.Problem = ", but inference.device is " + i.Device + ": `make build-cuda` makes a build for NVIDIA GPUs"
	}
	return c
}
