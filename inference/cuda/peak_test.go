//go:build cuda && cgo

package cuda

import (
	"math"
	"testing"

	"ragd/inference/cuda/cudrv"
)

// The peaks are what NVIDIA publishes: dense figures of the data sheets and architecture
// papers, of cards at their boost clock.
func TestPeaksAreThePublishedOnes(t *testing.T) {
	for _, c := range []struct {
		name                  string
		speed                 cudrv.Speed
		major, minor          int
		memory, int8, float16 float64 // GB/s, TOPS, TFLOPS; 0: not published
	}{
		{"V100 SXM2", cudrv.Speed{Multiprocessors: 80, ClockKHz: 1530000, MemoryKHz: 877000, BusBits: 4096}, 7, 0, 900, 0, 125},
		{"T4", cudrv.Speed{Multiprocessors: 40, ClockKHz: 1590000, MemoryKHz: 5001000, BusBits: 256}, 7, 5, 320, 130, 65},
		{"A100 SXM 80 GB", cudrv.Speed{Multiprocessors: 108, ClockKHz: 1410000, MemoryKHz: 1593000, BusBits: 5120}, 8, 0, 2039, 624, 312},
		{"RTX 3090", cudrv.Speed{Multiprocessors: 82, ClockKHz: 1695000, MemoryKHz: 9751000, BusBits: 384}, 8, 6, 936, 284, 142},
		{"RTX 4090", cudrv.Speed{Multiprocessors: 128, ClockKHz: 2520000, MemoryKHz: 10501000, BusBits: 384}, 8, 9, 1008, 660.6, 330.3},
		{"H100 SXM", cudrv.Speed{Multiprocessors: 132, ClockKHz: 1830000, MemoryKHz: 2619000, BusBits: 5120}, 9, 0, 3350, 1979, 989.4},
	} {
		memory, int8, float16 := peaks(c.speed, c.major, c.minor)
		for what, pair := range map[string][2]float64{"memory": {memory, c.memory}, "int8": {int8 / 1e3, c.int8}, "float16": {float16 / 1e3, c.float16}} {
			if pair[1] > 0 && math.Abs(pair[0]/pair[1]-1) > 0.01 {
				t.Errorf("%s: %s is %.0f, published are %.0f", c.name, what, pair[0], pair[1])
			}
		}
	}
	if memory, int8, float16 := peaks(cudrv.Speed{Multiprocessors: 1, ClockKHz: 1, MemoryKHz: 1000000, BusBits: 8}, 99, 0); memory != 2 || int8 != 0 || float16 != 0 {
		t.Errorf("an unknown device: %g, %g, %g", memory, int8, float16)
	}
}

func TestPeaksAreAskedOfTheDriver(t *testing.T) {
	t.Setenv("RAGD_SIM_CAPABILITY", "8.0")
	t.Setenv("RAGD_SIM_SPEED", "10:1000000:500000:1024")
	b := newBackend(t)
	memory, int8, float16, err := b.Peaks()
	if err != nil || memory != 128 || int8 != 40960 || float16 != 20480 {
		t.Errorf("%g, %g, %g, %v", memory, int8, float16, err)
	}
	t.Setenv("RAGD_SIM_FAIL", "cuDeviceGet:1:1")
	if _, _, _, err := b.Peaks(); err == nil {
		t.Error("no error when the driver does not tell")
	}
}
