//go:build cuda && cgo

package simdriver_test

import (
	"errors"
	"math"
	"testing"

	"ragd/inference/cuda/cudrv"
)

func TestStreamsAreLazy(t *testing.T) {
	d, m := open(t)
	var before, after float32
	err := d.Do(func() error {
		f, err := m.Function("fill")
		if err != nil {
			return err
		}
		out, err := cudrv.Alloc(4)
		if err != nil {
			return err
		}
		s, err := cudrv.NewStream()
		if err != nil {
			return err
		}
		if err := s.Launch(f, cudrv.Grid{X: 1, Y: 1, Z: 1, Threads: 1}, pack(out, float32(7), 1)); err != nil {
			return err
		}
		got := make([]float32, 1)
		err = cudrv.Download(bytesOf(got), out) // does not wait for the stream
		before = got[0]
		err = errors.Join(err, s.Synchronize(), cudrv.Download(bytesOf(got), out))
		after = got[0]
		return err
	})
	if err != nil || !math.IsNaN(float64(before)) || after != 7 {
		t.Errorf("before %g, after %g, error %v", before, after, err)
	}
}

// A pinned buffer that is reused before the copy is done is noticed, and so is one
// stream that has to wait for another.
func TestCopiesAndEvents(t *testing.T) {
	d, _ := open(t)
	var got float32
	err := d.Do(func() error {
		p, err := cudrv.AllocPinned(8)
		if err != nil {
			return err
		}
		defer p.Free()
		dev, err := cudrv.Alloc(4)
		if err != nil {
			return err
		}
		a, err := cudrv.NewStream()
		if err != nil {
			return err
		}
		b, err := cudrv.NewStream()
		if err != nil {
			return err
		}
		e, err := cudrv.NewEvent()
		if err != nil {
			return err
		}
		copy(p.Bytes(), bytesOf([]float32{1}))
		err = errors.Join(a.Upload(dev, p, 4), e.Record(a), b.Wait(e))
		copy(p.Bytes(), bytesOf([]float32{2})) // too early
		err = errors.Join(err, b.Synchronize(), e.Synchronize())
		out := make([]float32, 1)
		err = errors.Join(err, cudrv.Download(bytesOf(out), dev), e.Close(), a.Close(), b.Close())
		got = out[0]
		return err
	})
	if err != nil || got != 2 {
		t.Errorf("got %g (2 shows that the early write is seen), error %v", got, err)
	}
}

func TestGraphReplays(t *testing.T) {
	d, m := open(t)
	var got [2]float32
	err := d.Do(func() error {
		f, err := m.Function("sum")
		if err != nil {
			return err
		}
		in, err := cudrv.Alloc(4 * 64)
		if err != nil {
			return err
		}
		out, err := cudrv.Alloc(4)
		if err != nil {
			return err
		}
		s, err := cudrv.NewStream()
		if err != nil {
			return err
		}
		g, err := s.Capture(func() error {
			return s.Launch(f, cudrv.Grid{X: 1, Y: 1, Z: 1, Threads: 64}, pack(out, in))
		})
		if err != nil {
			return err
		}
		for i := range got {
			x := make([]float32, 64)
			for j := range x {
				x[j] = float32(i + j)
			}
			y := make([]float32, 1)
			if err := errors.Join(cudrv.Upload(in, bytesOf(x)), g.Launch(s), s.Synchronize(), cudrv.Download(bytesOf(y), out)); err != nil {
				return err
			}
			got[i] = y[0]
		}
		return g.Close()
	})
	if err != nil || got != [2]float32{2016, 2080} {
		t.Errorf("got %v, error %v", got, err)
	}
}

func TestInjectedFailure(t *testing.T) {
	d, _ := open(t)
	t.Setenv("RAGD_SIM_FAIL", "cuMemAlloc:2:2")
	for i := range 4 {
		err := d.Do(func() error { _, err := cudrv.Alloc(16); return err })
		if errors.Is(err, cudrv.ErrMemory) != (i == 1) {
			t.Errorf("call %d: %v", i, err)
		}
	}
}

func TestOutOfMemory(t *testing.T) {
	t.Setenv("RAGD_SIM_MEMORY", "1048576")
	d, _ := open(t)
	err := d.Do(func() error { _, err := cudrv.Alloc(1<<20 + 1); return err })
	if !errors.Is(err, cudrv.ErrMemory) {
		t.Errorf("the error is %v", err)
	}
}

// A call from a thread without the context fails, whatever thread runs it.
func TestContextBelongsToItsThread(t *testing.T) {
	open(t)
	if _, err := cudrv.Alloc(16); err == nil {
		t.Error("allocated outside Do")
	}
}

func TestClosedDevice(t *testing.T) {
	d, _ := open(t)
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if err := d.Do(func() error { return nil }); !errors.Is(err, cudrv.ErrClosed) {
		t.Errorf("the error is %v", err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("closing again: %v", err)
	}
}
