//go:build cuda && cgo

package cudrv

import "gorgonia.org/cu"

// Speed is what the driver reports of a device's parts.
type Speed struct {
	Multiprocessors int
	ClockKHz        int // of the multiprocessors, at the most
	MemoryKHz       int // of the memory, at the most; two transfers a cycle
	BusBits         int // of the memory
}

// ReadSpeed asks for them.
func ReadSpeed(ordinal int) (s Speed, err error) {
	d, err := cu.GetDevice(ordinal)
	if err != nil {
		return s, failed("find the device", err)
	}
	for _, a := range []struct {
		to   *int
		what cu.DeviceAttribute
		name string
	}{
		{&s.Multiprocessors, cu.MultiprocessorCount, "number of multiprocessors"},
		{&s.ClockKHz, cu.ClockRate, "clock of the multiprocessors"},
		{&s.MemoryKHz, cu.MemoryClockRate, "clock of the memory"},
		{&s.BusBits, cu.GlobalMemoryBusWidth, "width of the memory's bus"},
	} {
		if *a.to, err = d.Attribute(a.what); err != nil {
			return s, failed(a.name, err)
		}
	}
	return s, nil
}
