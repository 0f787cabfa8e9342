package config

import (
	"fmt"
	"slices"
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
	CacheFP8 = "fp8"
)

// The values of Inference.DeviceLayers beside a number.
const (
	LayersAll  = "all"
	LayersAuto = "auto"
)

// DeviceLayerCount is how many of the answer model's layers go to the device; false for
// "all" and "auto".
func (i Inference) DeviceLayerCount() (n int, ok bool) {
	n, err := strconv.Atoi(i.DeviceLayers)
	return n, err == nil && n >= 0 && i.DeviceLayers == strconv.Itoa(n)
}

// maxDevices is more GPUs than a machine has.
const maxDevices = 64

// DeviceNumber is the N of "cuda:N", of several the first; false for "auto" and "cpu".
func (i Inference) DeviceNumber() (n int, ok bool) {
	if list := i.DeviceNumbers(); len(list) > 0 {
		return list[0], true
	}
	return 0, false
}

// DeviceNumbers are the numbers of "cuda:N,cuda:M", each of another device; none for
// "auto", for "cpu" and for what is neither.
func (i Inference) DeviceNumbers() []int {
	var list []int
	for name := range strings.SplitSeq(i.Device, ",") {
		digits, ok := strings.CutPrefix(name, "cuda:")
		n, err := strconv.Atoi(digits)
		if !ok || err != nil || n < 0 || n >= maxDevices || digits != strconv.Itoa(n) || slices.Contains(list, n) {
			return nil
		}
		list = append(list, n)
	}
	return list
}

func (i Inference) checkDevice() error {
	if _, ok := i.DeviceNumber(); !ok && i.Device != DeviceAuto && i.Device != DeviceCPU {
		return &FieldError{"inference.device", fmt.Sprintf("%q is not one of [auto cpu cuda:0 … cuda:%d], nor several devices as in cuda:0,cuda:1", i.Device, maxDevices-1)}
	}
	if _, ok := i.DeviceLayerCount(); !ok && i.DeviceLayers != LayersAll && i.DeviceLayers != LayersAuto {
		return &FieldError{"inference.device_layers", fmt.Sprintf("%q is neither %q, %q nor a number of layers", i.DeviceLayers, LayersAll, LayersAuto)}
	}
	return nil
}
