package app

import (
	"log/slog"
	"strings"
	"testing"

	"ragd/internal/config"
)

// A cache type that only devices have is refused on the CPU at start, by its setting's
// name.
func TestCacheTypeOfDevicesOnTheCPU(t *testing.T) {
	cfg := settings(t)
	cfg.Inference.Device, cfg.Inference.KVCacheType = config.DeviceCPU, config.CacheQ8
	a, err := Open(t.Context(), cfg, Options{Version: "test", Log: slog.New(slog.DiscardHandler)})
	if err == nil {
		a.Close()
		t.Fatal("it started")
	}
	if !strings.Contains(err.Error(), "inference.kv_cache_type is q8_0") {
		t.Errorf("the error is %v", err)
	}
}

// Who asks for a device by a wrong name, or where there is none, is told so.
func TestOpenDeviceRefuses(t *testing.T) {
	for name, want := range map[string]string{"gpu": `"gpu" is no device`, "auto": "is no device", "cuda:63": "cuda:63: "} {
		ops, err := OpenDevice(config.Default(), name)
		if err == nil {
			ops.Close()
			t.Fatalf("%s opened", name)
		}
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
