//go:build cuda && cgo

package cuda

import (
	"errors"
	"slices"
	"testing"

	"ragd/inference/cpu"
	"ragd/inference/model"
	"ragd/inference/quant"
)

// Blocks that went to host memory and were overwritten on the device come back into
// others, whole, in caches of both types: decoding goes on with the same bits.
func TestBlocksComeBackFromTheHost(t *testing.T) {
	path := writeTiny(t)
	prompt, other := make([]int32, 30), make([]int32, 30)
	for i := range prompt {
		prompt[i], other[i] = int32(i%tinyVocab), int32(7*i%tinyVocab)
	}
	for _, typ := range []quant.Type{quant.F16, quant.Q8_0} {
		b := newBackend(t)
		b.cacheType = typ
		m, err := loadTiny(path, b)
		if err != nil {
			t.Fatal(err)
		}
		forward := func(tokens []int32, start int, blocks ...int32) []float32 {
			t.Helper()
			rows, err := m.Forward(model.Batch{{Tokens: tokens, Start: start, Blocks: blocks, Logits: 1}})
			if err != nil {
				t.Fatal(err)
			}
			return slices.Clone(rows[0])
		}
		move := func(moves ...model.BlockMove) {
			t.Helper()
			if err := m.MoveBlocks(moves); err != nil {
				t.Fatal(err)
			}
		}
		forward(prompt, 0, 1, 3)
		want := forward([]int32{9}, 30, 1, 3)
		forward(prompt, 0, 1, 3)
		move(model.BlockMove{Block: 3, Slot: 0, Save: true}, model.BlockMove{Block: 1, Slot: 1, Save: true})
		forward(other, 0, 1, 3)
		move(model.BlockMove{Block: 0, Slot: 1}, model.BlockMove{Block: 1, Slot: 0})
		if got := forward([]int32{9}, 30, 0, 1); !slices.Equal(got, want) {
			t.Errorf("%s: other logits after blocks were moved: off by %g", typ, worst(got, want))
		}
	}
}

func TestMoveBlocksRefuses(t *testing.T) {
	path := writeTiny(t)
	m, err := loadTiny(path, newBackend(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range []model.BlockMove{{Block: 4}, {Block: -1}, {Slot: 2}, {Slot: -1}} {
		if err := m.MoveBlocks([]model.BlockMove{v}); !errors.Is(err, model.ErrBatch) {
			t.Errorf("%+v: %v", v, err)
		}
	}
	host, err := loadTiny(path, newCPU(t, cpu.Config{Threads: 1}))
	if err != nil {
		t.Fatal(err)
	}
	defer host.Close()
	if err := host.MoveBlocks([]model.BlockMove{{}}); !errors.Is(err, model.ErrNoOffload) {
		t.Errorf("on the CPU: %v", err)
	}
}
