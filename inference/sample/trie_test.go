package sample

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

// A walk gives the tokens that trying each by itself gives, and never tries what
// begins with bytes that were refused.
func TestTrieWalk(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pieces := rapid.SliceOfN(rapid.SliceOfN(rapid.ByteRange('a', 'c'), 1, 5), 0, 40).Draw(t, "pieces")
		text := rapid.SliceOfN(rapid.ByteRange('a', 'c'), 0, 5).Draw(t, "text")
		var entries []entry
		want := newTokenSet(len(pieces))
		for id, p := range pieces {
			entries = append(entries, entry{int32(id), p})
			// A byte may stand where it is that of the text, or a 'b'.
			if fits(p, text) {
				want.add(int32(id))
			}
		}
		got := newTokenSet(len(pieces))
		taken := make([]byte, 0, 8)
		newTrie(entries).walk(&got, func(depth int, c byte) bool {
			if depth > len(taken) {
				t.Fatalf("byte %d is tried behind %q", depth, taken)
			}
			if !fits([]byte{c}, text[min(depth, len(text)):]) {
				return false
			}
			taken = append(taken[:depth], c)
			return true
		})
		for i := range want.bits {
			if got.bits[i] != want.bits[i] {
				t.Fatalf("pieces %q over %q: %b, want %b", pieces, text, got.bits[i], want.bits[i])
			}
		}
	})
}

func fits(piece, text []byte) bool {
	for i, c := range piece {
		if c != 'b' && (i >= len(text) || !bytes.Equal(text[i:i+1], piece[i:i+1])) {
			return false
		}
	}
	return true
}
