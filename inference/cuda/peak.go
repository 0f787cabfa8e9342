//go:build cuda && cgo

package cuda

import "ragd/inference/cuda/cudrv"

// Peaks is what the device could do at the most, computed from what the driver reports of
// its parts: memory read in 10⁹ bytes a second, and multiplications and additions in 10⁹
// a second of int8 (with int32 sums) and of float16. The latter are 0 for a compute
// capability that is not known here.
func (b *Backend) Peaks() (memory, int8, float16 float64, err error) {
	info := b.device.Info()
	s, err := cudrv.ReadSpeed(info.Ordinal)
	if err != nil {
		return 0, 0, 0, err
	}
	memory, int8, float16 = peaks(s, info.Major, info.Minor)
	return memory, int8, float16, nil
}

// perClock are the multiplications and additions of a multiprocessor in a cycle: dense
// ones of int8 and of float16, on tensor cores where they take the type (Volta's take no
// int8, where dp4a is the fastest). They are those that make NVIDIA's figures of the cards
// (TestPeaksAreThePublishedOnes) from clocks and numbers of multiprocessors; GeForce cards
// of 8.6 and 8.9 reach half of the float16 ones with float32 sums, which ragd takes.
var perClock = map[[2]int]struct{ int8, float16 float64 }{
	{7, 0}: {512, 1024},
	{7, 5}: {2048, 1024},
	{8, 0}: {4096, 2048},
	{8, 6}: {2048, 1024},
	{8, 9}: {2048, 1024},
	{9, 0}: {8192, 4096},
}

func peaks(s cudrv.Speed, major, minor int) (memory, int8, float16 float64) {
	const transfers = 2 // a cycle
	memory = transfers * float64(s.MemoryKHz) * 1e3 * float64(s.BusBits) / 8 / 1e9
	cycles := float64(s.Multiprocessors) * float64(s.ClockKHz) * 1e3 / 1e9
	p := perClock[[2]int{major, minor}]
	return memory, cycles * p.int8, cycles * p.float16
}
