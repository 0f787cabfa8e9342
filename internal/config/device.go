package config

import (
	"fmt"
	"strconv"
	"strings"
)

// The values of Inference.Device beside "cuda:N".
const (
	DeviceAuto = "auto"
	DeviceCPU  = "cpu"
)

// The values of Inference.KVCacheType.
const (
	CacheF16 = "f16"
	CacheQ8  = "q8_0"
)

// maxDevices is more GPUs than a machine has.
const maxDevices = 64

// DeviceNumber is the N of "cuda:N"; false for "auto" and "cpu".
func (i Inference) DeviceNumber() (n int, ok bool) {
	digits, ok := strings.CutPrefix(i.Device, "cuda:")
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(digits)
	return n, err == nil && n >= 0 && n < maxDevices && digits == strconv.Itoa(n)
}

func (i Inference) checkDevice() error {
	if _, ok := i.DeviceNumber(); ok || i.Device == DeviceAuto || i.Device == DeviceCPU {
		return nil
	}
	return &FieldError{"inference.device", fmt.Sprintf("%q is not one of [auto cpu cuda:0 … cuda:%d]", i.Device, maxDevices-1)}
}
