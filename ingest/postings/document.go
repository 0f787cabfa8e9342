package postings

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

// EncodeDocument packs the terms of a document's chunks, whose ids rise, into one
// value: for each term in byte order its length and bytes, then the length and
// bytes of its posting list. It is nil when no chunk has a term.
func EncodeDocument(chunks []int64, terms []map[string]int) []byte {
	lists := map[string][]Posting{}
	for i, counts := range terms {
		length := uint32(Length(counts))
		for term, n := range counts {
			lists[term] = append(lists[term], Posting{chunks[i], uint32(n), length})
		}
	}
	var out, list []byte
	for _, term := range slices.Sorted(maps.Keys(lists)) {
		list = Append(list[:0], lists[term])
		out = appendBytes(appendBytes(out, []byte(term)), list)
	}
	return out
}

// Length is the number of terms of a chunk, repetitions included.
func Length(counts map[string]int) int {
	sum := 0
	for _, n := range counts {
		sum += n
	}
	return sum
}

// EachTerm calls f with the terms of a document in byte order. The arguments are
// parts of data. It stops at the first error.
func EachTerm(data []byte, f func(term, list []byte) error) error {
	for len(data) > 0 {
		var term, list []byte
		var ok bool
		if term, data, ok = cutBytes(data); ok {
			list, data, ok = cutBytes(data)
		}
		if !ok {
			return fmt.Errorf("%w: terms of a document", ErrCorrupt)
		}
		if err := f(term, list); err != nil {
			return err
		}
	}
	return nil
}

func appendBytes(dst, b []byte) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(b))), b...)
}

func cutBytes(data []byte) (b, rest []byte, ok bool) {
	size, n := uvarint(data)
	if n == 0 || size > uint64(len(data)-n) {
		return nil, nil, false
	}
	return data[n : n+int(size)], data[n+int(size):], true
}
