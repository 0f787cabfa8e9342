package tokenizer

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// tableRanker ranks pairs of symbols by a pair table.
type tableRanker struct{ table *pairTable }

func (r tableRanker) pair(_ string, left, right *symbol) (uint32, int32) {
	return r.table.get(left.id, right.id)
}

// mergeNaively looks through all pairs before every merge.
func mergeNaively(ids []int32, table *pairTable) []int32 {
	ids = slices.Clone(ids)
	for {
		best, at, becomes := none, -1, int32(0)
		for i := 0; i+1 < len(ids); i++ {
			if rank, merged := table.get(ids[i], ids[i+1]); rank < best {
				best, at, becomes = rank, i, merged
			}
		}
		if at < 0 {
			return ids
		}
		ids[at] = becomes
		ids = slices.Delete(ids, at+1, at+2)
	}
}

func TestMergerEqualsNaiveMerging(t *testing.T) {
	id := rapid.Int32Range(0, 9)
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(0, 40).Draw(rt, "merges")
		table := newPairTable(n)
		for rank := range n {
			// Ranks in pairs: equal ones must merge leftmost first.
			table.add(id.Draw(rt, "left"), id.Draw(rt, "right"), uint32(rank/2), id.Draw(rt, "merged"))
		}
		ids := rapid.SliceOfN(id, 0, 60).Draw(rt, "ids")
		var m merger
		for i, v := range ids {
			m.add(v, int32(i), int32(i)+1)
		}
		m.run("", tableRanker{table})
		got, want := m.appendIDs(nil), mergeNaively(ids, table)
		if !slices.Equal(got, want) {
			rt.Fatalf("got %v, want %v", got, want)
		}
	})
}

func TestPairTable(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		type pair struct{ left, right int32 }
		want := map[pair]uint32{}
		n := rapid.IntRange(0, 300).Draw(rt, "n")
		table := newPairTable(n)
		id := rapid.Int32Range(0, 20)
		for i := range uint32(n) {
			p := pair{id.Draw(rt, "left"), id.Draw(rt, "right")}
			table.add(p.left, p.right, i, int32(i))
			if _, ok := want[p]; !ok {
				want[p] = i
			}
		}
		for left := range int32(21) {
			for right := range int32(21) {
				rank, _ := table.get(left, right)
				expect, ok := want[pair{left, right}]
				if ok != (rank != none) || ok && rank != expect {
					rt.Fatalf("pair %d %d: rank %d, want %d %v", left, right, rank, expect, ok)
				}
			}
		}
	})
}

func TestCutKeepsCharactersWhole(t *testing.T) {
	for _, tt := range []struct {
		text  string
		limit int
		want  int
	}{
		{"abc", 3, 3},
		{"abcd", 3, 3},
		{"가나", 4, 3},
		{"가나", 5, 3},
		{"가나", 6, 6},
		{"a😀b", 4, 1},
		{"a😀b", 5, 5},
		{"\x80\x80\x80\x80\x80\x80", 4, 4}, // no character anywhere
	} {
		if got := cut(tt.text, tt.limit); got != tt.want {
			t.Errorf("cut(%q, %d) = %d, want %d", tt.text, tt.limit, got, tt.want)
		}
	}
}
