package app

import (
	"fmt"
	"strings"
	"testing"

	"ragd/inference/gguf"
	"ragd/internal/config"
	"ragd/internal/testenv"
)

// The CPU keeps keys and values in q8_0 as devices do: questions are answered the same
// when their prefix is cached, and the log says what the cache takes.
func TestAskWithAQ8Cache(t *testing.T) {
	cfg := settings(t)
	cfg.Inference.Device, cfg.Inference.KVCacheType = config.DeviceCPU, config.CacheQ8
	l := start(t, cfg)
	const perToken = 30 * 3 * 64 * 2 * 34 / 32 // SmolLM2-135M
	if want := fmt.Sprintf(`"kv_cache_type":"q8_0","kv_bytes_per_token":%d,"kv_bytes":%d`, perToken, perToken*cfg.Inference.KVCacheTokens); !strings.Contains(l.log.text(), want) {
		t.Errorf("the log lacks %s: %s", want, l.log.text())
	}
	dir := write(t, map[string]string{"ferry.md": "# The ferry\n\nThe last ferry to the island leaves at nine in the evening from pier four.\n"})
	if r := l.ingest(t, "harbour", false, dir); r.Indexed != 1 {
		t.Fatalf("%+v", r)
	}
	req := body{"question": "When does the last ferry leave?", "collection": "harbour", "answer_mode": "generate", "budget": body{"answer_tokens": 16}}
	cold, warm := l.asked(t, req), l.asked(t, req)
	if cold.Answer == "" || warm.Answer != cold.Answer || warm.Usage.CachedTokens <= cold.Usage.CachedTokens {
		t.Errorf("cold %q with %d tokens cached, warm %q with %d", cold.Answer, cold.Usage.CachedTokens, warm.Answer, warm.Usage.CachedTokens)
	}
	checkTokens(t, warm)
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

// Without a device there is nothing to say of layers, whatever the settings ask for.
func TestLayersWithoutADevice(t *testing.T) {
	f, err := gguf.Open(testenv.Model(t, "smollm2-135m-instruct"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, device := range []string{config.DeviceCPU, config.DeviceAuto} {
		cfg := config.Default()
		cfg.Inference.Device, cfg.Inference.CUDALibrary, cfg.Inference.DeviceLayers = device, "/no/such/libcuda.so.1", "3"
		if places, err := Layers(f, cfg); err != nil || places != nil {
			t.Errorf("%s: %v, %v", device, places, err)
		}
	}
}
