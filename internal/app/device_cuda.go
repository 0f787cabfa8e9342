//go:build cuda && cgo

package app

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"ragd/inference/cuda"
	"ragd/inference/cuda/cudrv"
	"ragd/inference/model"
	"ragd/internal/config"
)

// openDevice makes a backend on the device that the settings name; with "auto", on
// the first.
func openDevice(i config.Inference, lost func(error)) (model.Ops, error) {
	n, _ := i.DeviceNumber()
	b, err := cuda.New(cuda.Config{Library: i.CUDALibrary, Device: n, CacheType: CacheType(i), Lost: lost})
	if err != nil {
		return nil, err
	}
	return b, nil
}

// deviceFailed reports whether an answer failed because of the device.
func deviceFailed(err error) bool {
	var e *cudrv.Error
	return errors.As(err, &e)
}

func checkDevice(i config.Inference) Check {
	c := Check{Name: "gpu"}
	list, err := devices(i.CUDALibrary)
	numbers := i.DeviceNumbers()
	wanted := len(numbers) > 0
	switch {
	case err != nil && wanted:
		c.Problem = err.Error()
	case err != nil:
		c.Found = "none, models run on the CPU: " + err.Error()
	case i.Device == config.DeviceCPU:
		c.Found = "not used, as inference.device says: " + describeDevices(list)
	case wanted && slices.Max(numbers) >= len(list):
		c.Problem = fmt.Sprintf("inference.device is %s, but there is only: %s", i.Device, describeDevices(list))
	default:
		c.Found = describeDevices(list)
	}
	return c
}

func devices(library string) ([]cudrv.Info, error) {
	if err := cudrv.Open(library); err != nil {
		return nil, err
	}
	list, err := cudrv.Devices()
	if err == nil && len(list) == 0 {
		err = errors.New("the driver knows no device")
	}
	return list, err
}

func describeDevices(list []cudrv.Info) string {
	names := make([]string, len(list))
	for i, d := range list {
		names[i] = d.String()
	}
	v := cudrv.Version()
	return fmt.Sprintf("%s; the driver supports CUDA %d.%d", strings.Join(names, "; "), v/1000, v%1000/10)
}
