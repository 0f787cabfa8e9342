//go:build cuda && cgo

package cudrv_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ragd/inference/cuda/cudrv"
)

// A process without a driver: calls fail and say so, and a library that is none is
// named. Then the simulated driver opens, once.
func TestOpen(t *testing.T) {
	if _, err := cudrv.Devices(); err == nil {
		t.Error("devices without a driver")
	}
	if _, err := cudrv.NewDevice(0); err == nil {
		t.Error("a device without a driver")
	}
	text := filepath.Join(t.TempDir(), "libcuda.so.1")
	if err := os.WriteFile(text, []byte("no library"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"libcuda-of-nobody.so.1", text} {
		if err := cudrv.Open(path); !errors.Is(err, cudrv.ErrUnavailable) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	driver := os.Getenv("RAGD_CUDA_DRIVER")
	for range 2 {
		if err := cudrv.Open(driver); err != nil {
			t.Fatal(err)
		}
	}
	if err := cudrv.Open(text); !errors.Is(err, cudrv.ErrUnavailable) || !strings.Contains(err.Error(), "is open already") {
		t.Errorf("a second driver: %v", err)
	}
	list, err := cudrv.Devices()
	if err != nil || len(list) != 1 || list[0].Major != 7 || list[0].Memory == 0 {
		t.Errorf("devices %+v, %v", list, err)
	}
	if cudrv.Version() != 12010 {
		t.Errorf("version %d", cudrv.Version())
	}
}
