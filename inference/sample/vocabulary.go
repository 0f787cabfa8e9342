package sample

import (
	"bytes"
	"slices"
)

// Vocabulary is the bytes of all tokens in order, so that a grammar can try
// them together: tokens with a common start share the work, and fail together.
// It is immutable and may serve many grammars at once.
type Vocabulary struct {
	size   int
	end    []int32 // end of generation
	plain  []entry // printable text with no quote and no backslash
	others []entry
	longer int // bytes of the longest token
}

type entry struct {
	id     int32
	piece  []byte
	common int // leading bytes shared with the entry before
}

// NewVocabulary reads the pieces of size tokens. A token without bytes, such as
// a control token, can only be chosen when it is one of end.
func NewVocabulary(size int, piece func(id int32) []byte, end []int32) *Vocabulary {
	v := &Vocabulary{size: size, end: slices.Clone(end)}
	for id := range int32(size) {
		p := piece(id)
		if len(p) == 0 || slices.Contains(end, id) {
			continue
		}
		v.longer = max(v.longer, len(p))
		if plainText(p) {
			v.plain = append(v.plain, entry{id: id, piece: p})
		} else {
			v.others = append(v.others, entry{id: id, piece: p})
		}
	}
	arrange(v.plain)
	arrange(v.others)
	return v
}

// plainText says whether p, anywhere inside a JSON string, leaves it there.
func plainText(p []byte) bool {
	s := jsonState{mode: inString}
	for _, c := range p {
		if c == '"' || c == '\\' || !s.step(c) {
			return false
		}
	}
	return s.mode == inString
}

func arrange(entries []entry) {
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.piece, b.piece) })
	for i := 1; i < len(entries); i++ {
		a, b := entries[i-1].piece, entries[i].piece
		n := 0
		for n < len(a) && n < len(b) && a[n] == b[n] {
			n++
		}
		entries[i].common = n
	}
}
