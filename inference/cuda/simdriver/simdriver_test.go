//go:build cuda && cgo

package simdriver_test

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unsafe"

	"ragd/inference/cuda/cudrv"
)

// open is a device of the simulated driver with the test kernels. RAGD_CUDA_DRIVER
// is the driver that tools/simdriver.sh built; misuse.ptx lies beside it.
func open(t *testing.T) (*cudrv.Device, cudrv.Module) {
	t.Helper()
	driver := os.Getenv("RAGD_CUDA_DRIVER")
	if driver == "" {
		t.Fatal("RAGD_CUDA_DRIVER names no simulated driver: run make test-cuda")
	}
	if err := cudrv.Open(driver); err != nil {
		t.Fatal(err)
	}
	ptx, err := os.ReadFile(filepath.Join(filepath.Dir(driver), "misuse.ptx"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := cudrv.NewDevice(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	var m cudrv.Module
	if err := d.Do(func() error { m, err = cudrv.LoadPTX(string(ptx)); return err }); err != nil {
		t.Fatal(err)
	}
	return d, m
}

// pack lays arguments out as a launch wants them.
func pack(args ...any) []byte {
	var b []byte
	align := func(n int) {
		for len(b)%n != 0 {
			b = append(b, 0)
		}
	}
	for _, a := range args {
		switch a := a.(type) {
		case cudrv.Ptr:
			align(8)
			b = binary.LittleEndian.AppendUint64(b, uint64(a))
		case float32:
			align(4)
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(a))
		case int:
			align(4)
			b = binary.LittleEndian.AppendUint32(b, uint32(a))
		}
	}
	return b
}

func bytesOf(v []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 4*len(v))
}

// launch runs one kernel of n threads with out as its first argument and returns
// what it left there.
func launch(t *testing.T, d *cudrv.Device, m cudrv.Module, name string, n, shared int, args ...any) ([]float32, error) {
	t.Helper()
	got := make([]float32, n)
	return got, d.Do(func() error {
		f, err := m.Function(name)
		if err != nil {
			return err
		}
		out, err := cudrv.Alloc(int64(4 * n))
		if err != nil {
			return err
		}
		s, err := cudrv.NewStream()
		if err != nil {
			return err
		}
		g := cudrv.Grid{X: 1, Y: 1, Z: 1, Threads: n, Shared: shared}
		if err := s.Launch(f, g, pack(append([]any{out}, args...)...)); err != nil {
			return err
		}
		if err := s.Synchronize(); err != nil {
			return err
		}
		return cudrv.Download(bytesOf(got), out)
	})
}

func TestFillRuns(t *testing.T) {
	d, m := open(t)
	got, err := launch(t, d, m, "fill", 64, 0, float32(2.5), 60)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range got {
		if i < 60 && v != 2.5 || i >= 60 && !math.IsNaN(float64(v)) {
			t.Errorf("element %d is %g: memory that nobody wrote has to be NaN", i, v)
		}
	}
}

func TestMisuseIsCaught(t *testing.T) {
	for name, c := range map[string]struct {
		threads, shared int
		args            []any
	}{
		"wild":       {32, 0, []any{8 << 10}},
		"diverged":   {32, 0, nil},
		"half_warp":  {32, 0, nil},
		"misaligned": {32, 512, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d, m := open(t)
			_, err := launch(t, d, m, name, c.threads, c.shared, c.args...)
			if !errors.Is(err, cudrv.ErrLost) {
				t.Fatalf("the error is %v", err)
			}
			// The context stays broken.
			if err := d.Do(func() error { _, err := cudrv.Alloc(4); return err }); !errors.Is(err, cudrv.ErrLost) {
				t.Errorf("afterwards the error is %v", err)
			}
		})
	}
}

func TestWildAccessIsExact(t *testing.T) {
	d, m := open(t)
	// 64 floats end at a page: the next one faults.
	if _, err := launch(t, d, m, "wild", 64, 0, 1); !errors.Is(err, cudrv.ErrLost) {
		t.Errorf("one float past the end: %v", err)
	}
}

// A missing barrier shows in one of the two orders at the latest.
func TestMissingBarrierShows(t *testing.T) {
	wrong := 0
	for _, order := range []string{"", "reverse"} {
		t.Setenv("RAGD_SIM_ORDER", order)
		d, m := open(t)
		got, err := launch(t, d, m, "neighbour", 64, 64*4)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if v != float32((i+1)%64) {
				wrong++
			}
		}
	}
	if wrong == 0 {
		t.Error("both orders gave the right result")
	}
}

// What is copied asynchronously is there when it was waited for, and not before.
func TestEarlyReadOfACopyShows(t *testing.T) {
	d, m := open(t)
	got, err := launch(t, d, m, "early", 8, 32)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range got {
		if i < 4 && v != float32(i) || i >= 4 && !math.IsNaN(float64(v)) {
			t.Errorf("value %d is %g", i, v)
		}
	}
}

func TestSharedMemoryOverrun(t *testing.T) {
	d, m := open(t)
	err := d.Do(func() error {
		f, err := m.Function("overrun")
		if err != nil {
			return err
		}
		s, err := cudrv.NewStream()
		if err != nil {
			return err
		}
		return errors.Join(s.Launch(f, cudrv.Grid{X: 1, Y: 1, Z: 1, Threads: 1, Shared: 64}, pack(16)), s.Synchronize())
	})
	if !errors.Is(err, cudrv.ErrLost) {
		t.Errorf("the error is %v", err)
	}
}

func TestLaunchLimits(t *testing.T) {
	d, m := open(t)
	for name, g := range map[string]cudrv.Grid{
		"no blocks":     {X: 0, Y: 1, Z: 1, Threads: 1},
		"many threads":  {X: 1, Y: 1, Z: 1, Threads: 1025},
		"shared memory": {X: 1, Y: 1, Z: 1, Threads: 1, Shared: 49 << 10},
	} {
		err := d.Do(func() error {
			f, err := m.Function("overrun")
			if err != nil {
				return err
			}
			return cudrv.Stream{}.Launch(f, g, pack(0))
		})
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	err := d.Do(func() error {
		f, err := m.Function("overrun")
		if err != nil {
			return err
		}
		if err := f.AllowShared(64 << 10); err != nil {
			return err
		}
		s, err := cudrv.NewStream()
		if err != nil {
			return err
		}
		return errors.Join(s.Launch(f, cudrv.Grid{X: 1, Y: 1, Z: 1, Threads: 1, Shared: 64 << 10}, pack(3)), s.Synchronize())
	})
	if err != nil {
		t.Errorf("64 KiB that were allowed: %v", err)
	}
}

func TestArgumentsAreChecked(t *testing.T) {
	d, m := open(t)
	if _, err := launch(t, d, m, "fill", 32, 0, float32(1)); err == nil {
		t.Error("a missing argument is not noticed")
	}
}

func TestModuleOfAnotherBuildIsRefused(t *testing.T) {
	d, _ := open(t)
	for name, ptx := range map[string]string{
		"unknown kernel":   ".version 8.1\n.visible .entry nobody(\n\t.param .u64 nobody_param_0\n)\n",
		"other parameters": ".version 8.1\n.visible .entry fill(\n\t.param .u64 fill_param_0\n)\n",
		"no PTX":           "hello",
	} {
		err := d.Do(func() error { _, err := cudrv.LoadPTX(ptx); return err })
		if err == nil || !strings.Contains(err.Error(), ": ") {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
}
