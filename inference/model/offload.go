package model

import "errors"

// BlockMove is a copy of one KV cache block, all layers of it, to a slot of host
// memory or back.
type BlockMove struct {
	Block, Slot int32
	Save        bool // to the slot; else from it
}

// OffloadOps is what a backend may have besides Ops: a device then keeps blocks in
// host memory that it has no room for. Where a model lies on several backends, a block
// moves on all of them; the host's part of it is then copied within its memory.
type OffloadOps interface {
	// Offload reserves host memory for slots blocks of c.
	Offload(c Cache, slots int) error
	// MoveBlocks makes copies in order. They may still be under way when it returns: the
	// next step waits for them, and reports those that fail.
	MoveBlocks(moves []BlockMove) error
}

// Offloader is a Decoder that can move blocks of its cache to host memory.
type Offloader interface {
	Decoder
	// Slots is how many blocks fit there; 0 for none.
	Slots() int
	// MoveBlocks makes copies in order, before the next Forward runs.
	MoveBlocks(moves []BlockMove) error
}

// ErrNoOffload says that the backend keeps no blocks in host memory.
var ErrNoOffload = errors.New("the backend keeps no cache blocks in host memory")

// Slots is how many cache blocks fit into host memory.
func (m *Llama) Slots() int { return m.slots }

// MoveBlocks copies cache blocks to host memory and back.
func (m *Llama) MoveBlocks(moves []BlockMove) error {
	if m.slots == 0 {
		return ErrNoOffload
	}
	for _, v := range moves {
		if v.Block < 0 || int(v.Block) >= m.blocks || v.Slot < 0 || int(v.Slot) >= m.slots {
			return ErrBatch
		}
	}
	for i := range m.stages {
		if err := m.stages[i].ops.(OffloadOps).MoveBlocks(moves); err != nil {
			return err
		}
	}
	return nil
}
