//go:build cuda && cgo

package app

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"ragd/inference/gguf"
	"ragd/inference/model"
	"ragd/internal/answer"
	"ragd/internal/config"
	"ragd/internal/testenv"
)

// Questions to a model of which 20 layers of 30 are on the CPU, with cached prefixes,
// drafts and both ledgers; then a step fails for lack of memory, and the next works.
func TestAskOnTheDeviceAndTheCPU(t *testing.T) {
	cfg := onDevice(t)
	cfg.Inference.DeviceLayers = "10"
	l := start(t, cfg)
	for _, want := range []string{"layers 0 to 19 on cpu/", "layers 20 to 29 on cuda:0", "the CPU reads its weights, 0.0"} {
		if !strings.Contains(l.log.text(), want) {
			t.Errorf("the log lacks %q: %s", want, l.log.text())
		}
	}
	dir := write(t, map[string]string{"ferry.md": "# The ferry\n\nThe last ferry to the island leaves at nine in the evening from pier four.\n"})
	if r := l.ingest(t, "harbour", false, dir); r.Indexed != 1 {
		t.Fatalf("%+v", r)
	}
	req := body{"question": "When does the last ferry leave?", "collection": "harbour", "answer_mode": "generate", "budget": body{"answer_tokens": 6}}
	cold := l.asked(t, req)
	warm := l.asked(t, req)
	if cold.Answer == "" || warm.Answer != cold.Answer || warm.Usage.CachedTokens <= cold.Usage.CachedTokens {
		t.Errorf("cold %q with %d tokens cached, warm %q with %d", cold.Answer, cold.Usage.CachedTokens, warm.Answer, warm.Usage.CachedTokens)
	}
	checkTokens(t, warm)
	checkTimes(t, l, warm)

	t.Setenv("RAGD_SIM_FAIL", "cuMemcpyHtoDAsync:1:2")
	embedded, message := l.refused(t, req, http.StatusServiceUnavailable, answer.Unavailable)
	if !strings.Contains(message, "device") {
		t.Errorf("%v: the message is %q", embedded, message)
	}
	if again := l.asked(t, req); again.Answer != cold.Answer {
		t.Errorf("after a failed step the answer is %q, not %q", again.Answer, cold.Answer)
	}
}

// openAnswer opens the answer model's file.
func openAnswer(t *testing.T) *gguf.File {
	t.Helper()
	f, err := gguf.Open(testenv.Model(t, "smollm2-135m-instruct"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// What the settings say of layers is what is done, and what is told before: as many as
// fit, some, none, or all, of which a lack of memory is told with the figures.
func TestDeviceLayers(t *testing.T) {
	f := openAnswer(t)
	for _, c := range []struct {
		layers, memory string
		onDevice       int // of 30
	}{
		{"all", "4294967296", 30},
		{"99", "4294967296", 30},
		{"99", "4294967296", 30},
		{"10", "4294967296", 10},
		{"0", "4294967296", 0},
		{"auto", "167772160", 22},
		{"auto", "4194304", 0},
	} {
		t.Run(c.layers+" of "+c.memory, func(t *testing.T) {
			t.Setenv("RAGD_SIM_MEMORY", c.memory)
			cfg := onDevice(t)
			cfg.Inference.DeviceLayers = c.layers
			checkDeviceLayers(t, f, cfg, c.onDevice)
		})
	}
}

// checkDeviceLayers loads the model and compares where it lies with what was told; onDevice
// layers lie on cuda:0, any number where it is negative.
func checkDeviceLayers(t *testing.T, f *gguf.File, cfg config.Config, onDevice int) {
	t.Helper()
	places, err := Layers(f, cfg)
	if err != nil {
		t.Fatal(err)
	}
	told := 0
	for _, p := range places {
		t.Log(p)
		if strings.HasPrefix(p.Backend, "cuda:0 ") {
			told += p.Layers
		}
	}
	if told != onDevice && onDevice >= 0 {
		t.Errorf("told %d layers on the device, not %d", told, onDevice)
	}
	a := &App{cfg: cfg}
	load := model.LoadConfig{Blocks: cfg.Inference.KVCacheTokens / model.BlockTokens, StepTokens: cfg.Inference.StepTokens}
	ops, err := a.answerBackends(f, &load)
	if err != nil {
		t.Fatal(err)
	}
	m, err := model.LoadDecoder(t.Context(), f, ops, load)
	if err != nil {
		t.Fatal(errors.Join(err, closeBackends(ops, load.Before)))
	}
	if got := fmt.Sprint(m.Places()); got != fmt.Sprint(places) {
		t.Errorf("the model lies at %s, told was %s", got, places)
	}
	if err := m.Close(); err != nil {
		t.Error(err)
	}
}

// Several devices have a run of layers each, the last ones as many as fit; what is left
// goes to the first, or with auto to the CPU.
func TestDeviceLayersOfSeveralDevices(t *testing.T) {
	f := openAnswer(t)
	for _, c := range []struct {
		device, layers, memory string
		want                   []string
	}{
		{"cuda:0,cuda:1", "all", "167772160", []string{"layers 0 to 7 on cuda:0", "layers 8 to 29 on cuda:1"}},
		{"cuda:1,cuda:0", "all", "167772160", []string{"layers 0 to 7 on cuda:1", "layers 8 to 29 on cuda:0"}},
		{"cuda:0,cuda:1", "25", "167772160", []string{"layers 0 to 4 on cpu/", "layers 5 to 7 on cuda:0", "layers 8 to 29 on cuda:1"}},
		{"cuda:0,cuda:1,cuda:2", "all", "4294967296", []string{"layers 0 to 29 on cuda:2"}},
		{"cuda:0,cuda:1", "auto", "130000000", []string{"layers 0 to 2 on cpu/", "layers 3 to 21 on cuda:0", "layers 22 to 29 on cuda:1"}},
	} {
		t.Run(c.device+" "+c.layers+" of "+c.memory, func(t *testing.T) {
			t.Setenv("RAGD_SIM_DEVICES", "3")
			t.Setenv("RAGD_SIM_MEMORY", c.memory)
			cfg := onDevice(t)
			cfg.Inference.Device, cfg.Inference.DeviceLayers = c.device, c.layers
			checkDeviceLayers(t, f, cfg, -1)
			places, err := Layers(f, cfg)
			if err != nil || len(places) != len(c.want) {
				t.Fatalf("%v, %v", places, err)
			}
			for i, want := range c.want {
				if !strings.HasPrefix(places[i].String(), want) {
					t.Errorf("stage %d: %s, want %s", i, places[i], want)
				}
			}
		})
	}
	t.Setenv("RAGD_SIM_DEVICES", "2")
	cfg := onDevice(t)
	cfg.Inference.Device = "cuda:0,cuda:2"
	if _, err := Layers(f, cfg); err == nil || !strings.Contains(err.Error(), "device 2") {
		t.Errorf("a device that is not there: %v", err)
	}
	if c := checkDevice(cfg.Inference); !strings.Contains(c.Problem, "there is only") {
		t.Errorf("doctor says %+v", c)
	}
}

func TestAllLayersThatDoNotFit(t *testing.T) {
	t.Setenv("RAGD_SIM_MEMORY", "167772160")
	cfg := onDevice(t)
	_, err := Layers(openAnswer(t), cfg)
	var e *model.RoomError
	if !errors.As(err, &e) || e.Fit < 10 || e.Of != 30 || !strings.Contains(err.Error(), "inference.device_layers=auto") {
		t.Errorf("the error is %v", err)
	}
	cfg.Models.Answer = testenv.Model(t, "smollm2-135m-instruct")
	checks := checkLayers(cfg, t.TempDir())
	if len(checks) != 1 || !strings.Contains(checks[0].Found, "layers 0 to 29 on cuda:0") || !strings.Contains(checks[0].Problem, "of KV cache for 1024 tokens") {
		t.Errorf("doctor says %+v", checks)
	}
}
