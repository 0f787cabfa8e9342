//go:build cuda && cgo

package cuda

import (
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"ragd/inference/cpu"
	"ragd/inference/cuda/cudrv"
	"ragd/inference/model"
)

// runTiny is the life of a backend: load, a prefill beside a second sequence, decode
// steps until they are replayed, close. It returns the logits of both steps; closing
// errors come apart. The layers of a split model before the last are on the CPU.
func runTiny(path string, cfg Config, split bool) (logits []float32, failed, closing error) {
	var host []model.Ops
	if split {
		ops, err := cpu.New(cpu.Config{Threads: 1})
		if err != nil {
			return nil, err, nil
		}
		defer ops.Close()
		host = append(host, ops)
	}
	b, err := New(cfg)
	if err != nil {
		return nil, err, nil
	}
	m, err := loadTiny(path, b, host...)
	if err != nil {
		return nil, err, b.Close()
	}
	defer func() { closing = m.Close() }()
	for i, batch := range tinySteps {
		step := func() ([][]float32, error) {
			// Between two steps a block goes to host memory and comes back.
			if i == 2 {
				if err := m.MoveBlocks([]model.BlockMove{{Block: 2, Slot: 1, Save: true}, {Block: 2, Slot: 1}}); err != nil {
					return nil, err
				}
			}
			// Some steps tell the largest logits, and all when asked.
			if i == 3 || i == 5 {
				if _, err := m.ForwardBest(batch, 64, []model.Choice{{Seen: []int32{3, 7}, Penalty: 1.1, Scale: 2}}); err != nil {
					return nil, err
				}
				row, err := m.BestRow(0)
				return [][]float32{row}, err
			}
			return m.Forward(batch)
		}
		rows, err := step()
		if err != nil {
			failed = errors.Join(failed, err)
			// What failed once may work now; what is lost stays lost.
			if rows, err = step(); err != nil {
				return nil, errors.Join(failed, err), nil
			}
		}
		for _, r := range rows {
			logits = append(logits, r...)
		}
	}
	return logits, failed, nil
}

var tinySteps = []model.Batch{
	{{Tokens: []int32{5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, Blocks: []int32{2}, Logits: 2}, {Tokens: []int32{7, 5}, Blocks: []int32{0}}},
	{{Tokens: []int32{17}, Start: 12, Blocks: []int32{2}, Logits: 1}},
	{{Tokens: []int32{18}, Start: 13, Blocks: []int32{2}, Logits: 1}},
	{{Tokens: []int32{19}, Start: 14, Blocks: []int32{2}, Logits: 1}},
	{{Tokens: []int32{20}, Start: 15, Blocks: []int32{2}, Logits: 1}},
	{{Tokens: []int32{21}, Start: 16, Blocks: []int32{2, 1}, Logits: 1}},
}

// The tiny model takes every branch of the decoder's operations; the CPU engine
// computes the same.
func TestTinyModelAsTheCPU(t *testing.T) {
	path := writeTiny(t)
	ops, err := cpu.New(cpu.Config{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	m, err := loadTiny(path, ops)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	var want []float32
	for _, batch := range tinySteps {
		rows, err := m.Forward(batch)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			want = append(want, r...)
		}
	}
	inBothOrders(t, func(t *testing.T) {
		for _, c := range []string{"8.0", "8.6"} {
			onCapability(t, c)
			for _, split := range []bool{false, true} {
				got, err, closing := runTiny(path, testConfig(t), split)
				if err != nil || closing != nil {
					t.Fatal(err, closing)
				}
				if d := worst(got, want); d > 0.03 { // a code that rounds the other way costs a percent here
					t.Errorf("%s, split %v: off by %g", c, split, d)
				}
			}
		}
	})
}

// Decode steps are replayed as a graph, also across a block's end, and give the bits
// that one step over all tokens gives.
func TestDecodeStepsAreReplayed(t *testing.T) {
	for _, c := range []string{"7.0", "8.0", "8.6"} {
		t.Run(c, func(t *testing.T) {
			onCapability(t, c)
			decodeStepsAreReplayed(t)
		})
	}
}

func decodeStepsAreReplayed(t *testing.T) {
	t.Helper()
	b := newBackend(t)
	m, err := loadTiny(writeTiny(t), b)
	if err != nil {
		t.Fatal(err)
	}
	tokens := make([]int32, 40)
	for i := range tokens {
		tokens[i] = int32(i*7%tinyVocab + 1)
	}
	blocks := []int32{3, 0, 2}
	rows, err := m.Forward(model.Batch{{Tokens: tokens, Blocks: blocks, Logits: len(tokens)}})
	if err != nil {
		t.Fatal(err)
	}
	var want [][]float32
	for _, r := range rows {
		want = append(want, slices.Clone(r))
	}
	for at := range tokens {
		got, err := m.Forward(model.Batch{{Tokens: tokens[at : at+1], Start: at, Blocks: blocks[:at/model.BlockTokens+1], Logits: 1}})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got[0], want[at]) {
			t.Errorf("position %d has other bits alone than together", at)
		}
	}
	if len(b.replay.graphs) != 1 || b.replay.count != len(tokens)-2 {
		t.Errorf("%d graphs, %d steps replayed of %d", len(b.replay.graphs), b.replay.count, len(tokens))
	}
}

// Every call of the driver in turn fails, with codes that pass and with codes that lose
// the device: there is an error or the right result, never a panic, and
// the device's memory is given back.
func TestEveryCallMayFail(t *testing.T) { everyCallMayFail(t, false, 1000) }

// The same where a part of the layers is on the CPU.
func TestEveryCallOfASplitModelMayFail(t *testing.T) { everyCallMayFail(t, true, 800) }

func everyCallMayFail(t *testing.T, split bool, atLeast int) {
	path, cfg := writeTiny(t), testConfig(t)
	want, err, _ := runTiny(path, cfg, split)
	if err != nil {
		t.Fatal(err)
	}
	// Codes that pass, and codes that lose the context.
	codes := map[int]bool{1: false, 2: false, 700: true, 709: true, 719: true}
	failures, recovered := 0, 0
	for n, done := 1, false; !done || n <= 100; n++ {
		done = true
		for code, loses := range codes {
			t.Setenv("RAGD_SIM_FAIL", fmt.Sprintf("*:%d:%d", n, code))
			got, err, closing := runTiny(path, cfg, split)
			os.Unsetenv("RAGD_SIM_FAIL")
			if err == nil && closing == nil && slices.Equal(got, want) {
				continue // beyond the last call, or in one whose answer nobody needs
			}
			done = false
			failures++
			if loses && err != nil && got != nil {
				t.Errorf("call %d: an answer after the device was lost", n)
			}
			if got != nil {
				recovered++
				if !slices.Equal(got, want) {
					t.Errorf("call %d: another result after %v", n, err)
				}
			}
			if closing == nil {
				checkNothingLeft(t, n)
			}
		}
	}
	t.Logf("%d injected failures, %d completed on retry", failures, recovered)
	if failures < atLeast || recovered == 0 {
		t.Errorf("%d failures, %d recovered: the injection does not reach the calls", failures, recovered)
	}
}

// Every call of fetching a row in turn fails: the step stays good, and so does the row
// where the device is not lost.
func TestFetchingARowMayFail(t *testing.T) {
	for code, loses := range map[int]bool{1: false, 2: false, 700: true} {
		for call := 1; call <= 2; call++ {
			b := newBackend(t)
			m, err := loadTiny(writeTiny(t), b)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := m.ForwardBest(tinySteps[0], 64, unchanged(2)); err != nil {
				t.Fatal(err)
			}
			want, err := m.BestRow(1)
			if err != nil {
				t.Fatal(err)
			}
			want = slices.Clone(want)
			t.Setenv("RAGD_SIM_FAIL", fmt.Sprintf("*:%d:%d", call, code))
			if _, err := m.BestRow(1); err == nil || errors.Is(err, cudrv.ErrLost) != loses {
				t.Errorf("call %d, code %d: the error is %v", call, code, err)
			}
			os.Unsetenv("RAGD_SIM_FAIL")
			got, err := m.BestRow(1)
			if (err != nil) != loses || !loses && !slices.Equal(got, want) {
				t.Errorf("call %d, code %d: then %v, %v", call, code, got, err)
			}
			if _, err := m.ForwardBest(tinySteps[1], 1, unchanged(1)); (err != nil) != loses {
				t.Errorf("call %d, code %d: the next step: %v", call, code, err)
			}
		}
	}
}

func checkNothingLeft(t *testing.T, n int) {
	t.Helper()
	d, err := cudrv.NewDevice(0)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	err = d.Do(func() error {
		free, total, err := cudrv.MemoryInfo()
		if free != total {
			t.Errorf("call %d: %d bytes of device memory are left", n, total-free)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// A lost device is told once, and everything after it fails with the same.
func TestLostDeviceIsTold(t *testing.T) {
	path, cfg := writeTiny(t), testConfig(t)
	var told []error
	cfg.Lost = func(err error) { told = append(told, err) }
	b, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	m, err := loadTiny(path, b)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("RAGD_SIM_FAIL", "cuLaunchKernel:5:700")
	for range 3 {
		if _, err := m.Forward(tinySteps[0]); !errors.Is(err, cudrv.ErrLost) {
			t.Errorf("the error is %v", err)
		}
	}
	if len(told) != 1 || !errors.Is(told[0], cudrv.ErrLost) {
		t.Errorf("told %v", told)
	}
	if err := m.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
}

// What does not fit is refused with the figures.
func TestModelThatDoesNotFit(t *testing.T) {
	t.Setenv("RAGD_SIM_MEMORY", "32768")
	b := newBackend(t)
	_, err := loadTiny(writeTiny(t), b)
	var e *model.RoomError
	if !errors.As(err, &e) || e.Cache != 4*16*tinyLayers*tinyKV*tinyDim*2*2 || e.Weights < 10000 || e.Total != 32768 || e.Fit != 0 || e.Of != tinyLayers {
		t.Errorf("the error is %v", err)
	}
	if _, err := b.LoadVector(make([]float32, 10000)); !errors.Is(err, cudrv.ErrMemory) || !strings.Contains(err.Error(), "MiB free") {
		t.Errorf("the error is %v", err)
	}
}

func TestNoSuchDevice(t *testing.T) {
	cfg := testConfig(t)
	cfg.Device = 3
	if _, err := New(cfg); err == nil || !strings.Contains(err.Error(), "device 3") {
		t.Errorf("the error is %v", err)
	}
	cfg.Library = "libcuda-of-nobody.so.1"
	if _, err := New(cfg); !errors.Is(err, cudrv.ErrUnavailable) {
		t.Errorf("the error is %v", err)
	}
}

func TestWorstSeesNaN(t *testing.T) {
	if d := worst([]float32{float32(math.NaN())}, []float32{1}); !math.IsInf(d, 1) {
		t.Errorf("NaN is %g away", d)
	}
}
