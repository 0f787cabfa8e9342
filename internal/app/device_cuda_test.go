//go:build cuda && cgo

package app

import (
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"ragd/inference/cuda"
	"ragd/inference/cuda/cudrv"
	"ragd/internal/answer"
	"ragd/internal/bench"
	"ragd/internal/config"
)

// `ragd bench engine --device` asks the device for its peaks.
var _ bench.PeakOps = (*cuda.Backend)(nil)

// onDevice are settings that compute on the simulated device that `make test-cuda`
// builds.
func onDevice(t *testing.T) config.Config {
	t.Helper()
	cfg := settings(t)
	cfg.Inference.Device, cfg.Inference.CUDALibrary = "cuda:0", os.Getenv("RAGD_CUDA_DRIVER")
	if cfg.Inference.CUDALibrary == "" {
		t.Fatal("RAGD_CUDA_DRIVER names no driver: run make test-cuda")
	}
	cfg.Inference.KVCacheType, cfg.Inference.KVOffloadTokens = config.CacheQ8, 512
	cfg.Inference.KVCacheTokens, cfg.Prompt.ContextTokens = 1024, 96
	cfg.Server.RequestTimeout = 20 * time.Minute
	return cfg
}

// Documents and questions on the device, with both ledgers; then the device is lost.
func TestAskOnTheDevice(t *testing.T) {
	l := start(t, onDevice(t))
	dir := write(t, map[string]string{"ferry.md": "# The ferry\n\nThe last ferry to the island leaves at nine in the evening from pier four.\n"})
	if r := l.ingest(t, "harbour", false, dir); r.Indexed != 1 {
		t.Fatalf("%+v", r)
	}
	req := body{"question": "When does the last ferry leave?", "collection": "harbour", "answer_mode": "generate", "budget": body{"answer_tokens": 6}}
	res := l.asked(t, req)
	if res.Usage.OutputTokens == 0 || len(res.Sources.Presented) == 0 {
		t.Errorf("%+v", res)
	}
	t.Logf("answer %q from %d tokens", res.Answer, res.Usage.InputTokens)
	checkTokens(t, res)
	checkTimes(t, l, res)

	t.Setenv("RAGD_SIM_FAIL", "cuLaunchKernel:1:700")
	_, message := l.refused(t, req, http.StatusServiceUnavailable, answer.Unavailable)
	if !strings.Contains(message, "device") {
		t.Errorf("the message is %q", message)
	}
	select {
	case err := <-l.lost:
		if !errors.Is(err, cudrv.ErrLost) {
			t.Errorf("told %v", err)
		}
	default:
		t.Error("nobody was told that the device is lost")
	}
}

func TestDoctorKnowsTheDevice(t *testing.T) {
	i := onDevice(t).Inference
	if c := checkDevice(i); c.Problem != "" || !strings.Contains(c.Found, "simulated device") {
		t.Errorf("%+v", c)
	}
	i.Device = "cuda:5"
	if c := checkDevice(i); !strings.Contains(c.Problem, "there is only") {
		t.Errorf("%+v", c)
	}
}
