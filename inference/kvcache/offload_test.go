package kvcache

import (
	"testing"

	"ragd/inference/model"
)

// A prefix whose blocks were given to others comes back from slots, first block first;
// without slots it is gone.
func TestPrefixesComeBackFromSlots(t *testing.T) {
	for _, slots := range []int{0, 4} {
		p := NewPool(3, Config{Slots: slots})
		first, second := numbered(0, 40), numbered(100, 40)
		fill(t, p, first, "")
		if m := p.Moves(); len(m) != 0 {
			t.Errorf("moves %v into blank blocks", m)
		}
		fill(t, p, second, "")
		saved := p.Moves()
		table := reserve(t, p, first, 40, "")
		moves := p.Moves()
		if slots == 0 {
			if table.Cached() != 0 || len(saved)+len(moves) != 0 {
				t.Errorf("without slots %d tokens came back, moves %v, %v", table.Cached(), saved, moves)
			}
			continue
		}
		if len(saved) != 2 || !saved[0].Save || !saved[1].Save || saved[0].Slot == saved[1].Slot {
			t.Errorf("moves %v, want two blocks saved", saved)
		}
		if table.Cached() != 32 || p.Offloaded() != 2 {
			t.Errorf("%d tokens came back, %d slots are in use; want 32, and 2 for the other prompt", table.Cached(), p.Offloaded())
		}
		back := 0
		for _, m := range moves {
			if m.Save {
				continue
			}
			// The second block was saved first: it was the older.
			if m != (model.BlockMove{Block: table.Blocks()[back], Slot: saved[1-back].Slot}) {
				t.Errorf("move %+v for block %d of the prompt, saved %+v", m, back, saved)
			}
			back++
		}
		if back != 2 {
			t.Errorf("moves %v", moves)
		}
	}
}

// What was being moved when a step failed is forgotten.
func TestClear(t *testing.T) {
	p := NewPool(3, Config{Slots: 2})
	fill(t, p, numbered(0, 40), "")
	fill(t, p, numbered(100, 40), "")
	p.Clear()
	table := reserve(t, p, numbered(0, 40), 40, "")
	if table.Cached() != 0 || p.Offloaded() != 0 || p.Cached() != 0 || len(p.Moves()) != 0 || p.InUse() != 3 {
		t.Errorf("%d tokens cached, %d slots, %d blocks cached", table.Cached(), p.Offloaded(), p.Cached())
	}
}
