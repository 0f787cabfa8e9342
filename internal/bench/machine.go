package bench

import (
	"bufio"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"ragd/inference/cpu/kernel"
)

const (
	// sweep is how much memory each thread reads in a pass: far beyond any cache.
	sweep = 128 << 20
	// A tile as the backend cuts them: its weights fit the first-level cache.
	tileRows, tileCols, tileDepth = 64, 64, 512
	// The best of some passes is the limit; the others met other work.
	passes = 5
)

// Measure finds out what the machine can do with that many threads (0: all).
func Measure(threads int) (Machine, error) {
	if threads == 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	m := Machine{CPU: cpuName(), Threads: threads}
	set := kernel.Best()
	m.GBs = best(threads, func() func() float64 { return reader(set) })
	var err error
	m.GOPs = best(threads, func() func() float64 {
		work, e := multiplier(set)
		if e != nil {
			err = e
		}
		return work
	})
	return m, err
}

// best is the largest sum over threads of work done in a second, in units of 10⁹.
// Each thread runs a function of its own, which says how much it did.
func best(threads int, prepare func() func() float64) float64 {
	works := make([]func() float64, threads)
	for i := range works {
		works[i] = prepare()
	}
	top := 0.0
	for range passes {
		var wg sync.WaitGroup
		done := make([]float64, threads)
		began := time.Now()
		for i := range works {
			wg.Go(func() { done[i] = works[i]() })
		}
		wg.Wait()
		sum := 0.0
		for _, d := range done {
			sum += d
		}
		top = max(top, sum/time.Since(began).Seconds()/1e9)
	}
	return top
}

// reader reads a stretch of memory once.
func reader(set *kernel.Set) func() float64 {
	memory := make([]float32, sweep/4)
	for i := 0; i < len(memory); i += 1024 {
		memory[i] = 1 // so that each page is there
	}
	const chunk = 16 << 10
	return func() float64 {
		for at := 0; at < len(memory); at += chunk {
			part := memory[at : at+chunk]
			set.Dot(part, part) // the second reading comes out of the cache
		}
		return sweep
	}
}

// multiplier multiplies a tile of 4-bit weights and int8 activations again and again.
func multiplier(set *kernel.Set) (func() float64, error) {
	weights, err := kernel.New(kernel.Q4_0, tileCols, tileDepth)
	if err != nil {
		return nil, err
	}
	var acts kernel.Acts
	acts.Resize(tileRows, tileDepth)
	row := make([]float32, tileDepth)
	for i := range row {
		row[i] = float32(i%17) - 8
	}
	for r := range tileRows {
		set.Quantize(&acts, r, row)
	}
	dst := make([]float32, tileRows*tileCols)
	const times = 2000
	return func() float64 {
		for range times {
			set.MatMul(dst, tileCols, &acts, 0, tileRows, weights, 0, tileCols)
		}
		return times * 2 * tileRows * tileCols * tileDepth
	}, nil
}

// cpuName is the processor's name where the system tells it.
func cpuName() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return runtime.GOARCH
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if key, value, ok := strings.Cut(lines.Text(), ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return runtime.GOARCH
}
