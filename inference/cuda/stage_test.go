//go:build cuda && cgo

package cuda

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"ragd/inference/cpu"
	"ragd/inference/cuda/cudrv"
	"ragd/inference/gguf"
	"ragd/inference/model"
	"ragd/internal/testenv"
)

// The layers on a device take what was said before they were loaded: weights and cache
// to the byte, and no more than was set aside for the activations, however steps grow.
func TestMemoryIsWhatWasSaid(t *testing.T) {
	const rows, blocks, kept = 64, 32, 28
	f, err := gguf.Open(testenv.Model(t, smolLM2))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := newBackend(t)
	empty, _, err := b.Room()
	if err != nil {
		t.Fatal(err)
	}
	cfg := model.LoadConfig{Blocks: blocks, StepTokens: rows}
	needs, err := model.NeedsOf(f, b, cfg)
	if err != nil {
		t.Fatal(err)
	}
	need := needs.Of(kept, needs.Layers())
	cfg.Before = []model.Stage{{Ops: newCPU(t, cpu.Config{}), Layers: kept}}
	m, err := model.LoadDecoder(context.Background(), f, b, cfg)
	if err != nil {
		t.Fatal(err)
	}
	taken := func() int64 {
		free, _, err := b.Room()
		if err != nil {
			t.Fatal(err)
		}
		return empty - free
	}
	// Memory is handed out in multiples of a few bytes.
	if n, want := taken(), need.Weights+need.Cache; n < want || n > want+want/1000 {
		t.Errorf("%d bytes are taken, %d of weights and cache were said", n, want)
	}
	at := 0
	for _, n := range []int{1, rows / 2, rows, rows} {
		p := model.Piece{Tokens: make([]int32, n), Start: at, Blocks: blocksOf(m, at+n), Logits: min(n, 32)}
		if at += n; n == 1 {
			p.Blocks = blocksOf(m, model.BlockTokens)
		}
		if _, err := m.Forward(model.Batch{p}); err != nil {
			t.Fatal(err)
		}
		if used := taken() - need.Weights - need.Cache; used > need.Step {
			t.Errorf("activations of %d rows take %d bytes, %d were set aside", n, used, need.Step)
		}
	}
	if used := taken() - need.Weights - need.Cache; used < need.Step/8 {
		t.Errorf("%d bytes were set aside for activations that take %d", need.Step, used)
	}
}

// A device may be the first of two backends, too: its rows go to the second.
func TestRowsLeaveTheDevice(t *testing.T) {
	path := writeTiny(t)
	whole, err := loadTiny(path, newCPU(t, cpu.Config{Threads: 1}))
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	host := newCPU(t, cpu.Config{Threads: 1})
	m, err := loadTiny(path, host, newBackend(t))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, batch := range tinySteps {
		want, err := whole.Forward(batch)
		if err != nil {
			t.Fatal(err)
		}
		want = slices.Clone(want)
		got, err := m.Forward(batch)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			if d := worst(got[i], want[i]); d > 0.03 {
				t.Errorf("off by %g", d)
			}
		}
	}
}

// What crosses to a device that cannot take it is an error of the step.
func TestRowsThatCannotCross(t *testing.T) {
	m, err := loadTiny(writeTiny(t), newBackend(t), newCPU(t, cpu.Config{Threads: 1}))
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	t.Setenv("RAGD_SIM_FAIL", "cuMemHostAlloc:1:2")
	if _, err := m.Forward(tinySteps[0]); !errors.Is(err, cudrv.ErrMemory) {
		t.Errorf("the error is %v", err)
	}
	if _, err := m.Forward(tinySteps[0]); err != nil {
		t.Errorf("the step after: %v", err)
	}
}

// A model over two devices gives the bits that it gives on one, and the failure of either
// is the step's.
func TestTwoDevicesAsOne(t *testing.T) {
	t.Setenv("RAGD_SIM_DEVICES", "2")
	path := writeTiny(t)
	want, err, closing := runTiny(path, testConfig(t), false)
	if err != nil || closing != nil {
		t.Fatal(err, closing)
	}
	cfg := testConfig(t)
	cfg.Device = 1
	second, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	first := newBackend(t)
	m, err := loadTiny(path, second, first)
	if err != nil {
		t.Fatal(err, second.Close())
	}
	defer func() {
		if err := m.Close(); err != nil {
			t.Error(err)
		}
		checkNothingLeft(t, 0)
	}()
	if free, total, err := second.Room(); err != nil || free == total {
		t.Errorf("nothing lies on the second device: %d of %d are free, %v", free, total, err)
	}
	var got []float32
	for i, batch := range tinySteps {
		if i == 2 {
			if err := m.MoveBlocks([]model.BlockMove{{Block: 2, Slot: 1, Save: true}, {Block: 2, Slot: 1}}); err != nil {
				t.Fatal(err)
			}
		}
		rows, err := m.Forward(batch)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			got = append(got, r...)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("other bits than on one device, off by %g", worst(got, want))
	}
	failed := 0
	for n := range 4 {
		t.Setenv("RAGD_SIM_FAIL", fmt.Sprintf("cuStreamSynchronize:%d:2", n+1))
		if _, err := m.Forward(tinySteps[5]); err != nil {
			failed++
		}
	}
	if failed != 2 {
		t.Errorf("%d steps failed, 2 synchronise", failed)
	}
}
