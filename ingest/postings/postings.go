// Package postings is the form in which posting lists are stored: which chunks
// hold a term, how often, and how long each of them is. It is pure.
//
// A list is a run of postings in the order of their chunks, each three unsigned
// varints (encoding/binary): the chunk's id less the one before it, the count of
// the term, the chunk's length in terms. So a posting takes about four bytes, and
// the scores of a question need nothing but the lists of its terms.
package postings

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// ErrCorrupt: the bytes are no posting list.
var ErrCorrupt = errors.New("corrupt posting list")

// Posting says that a chunk of Length terms holds a term Count times.
type Posting struct {
	Chunk         int64
	Count, Length uint32
}

// Append adds the encoding of list, whose chunks must rise from one to the next.
func Append(dst []byte, list []Posting) []byte {
	last := int64(0)
	for _, p := range list {
		dst = binary.AppendUvarint(dst, uint64(p.Chunk-last))
		dst = binary.AppendUvarint(dst, uint64(p.Count))
		dst = binary.AppendUvarint(dst, uint64(p.Length))
		last = p.Chunk
	}
	return dst
}

// Decode adds the postings of an encoded list to dst.
func Decode(dst []Posting, list []byte) ([]Posting, error) {
	r := NewReader(list)
	for r.Next() {
		dst = append(dst, r.Posting)
	}
	return dst, r.Err()
}

// Sort brings postings into the order of an encoded list.
func Sort(list []Posting) {
	slices.SortFunc(list, func(a, b Posting) int { return cmp.Compare(a.Chunk, b.Chunk) })
}

// Reader walks an encoded list.
type Reader struct {
	Posting
	data []byte
	at   int // of the next posting; a number, for a pointer would cost a write barrier
	err  error
}

// NewReader returns a reader before the first posting of a list.
func NewReader(list []byte) Reader { return Reader{data: list} }

// Next moves to the next posting. It returns false at the end and at the first
// byte that is wrong; Err tells them apart.
func (r *Reader) Next() bool {
	rest := r.data[r.at:]
	// Most postings of long lists are three or four bytes: the length takes two from 128.
	if len(rest) >= 4 && rest[0]|rest[1] < 0x80 && rest[0] != 0 && (rest[2] < 0x80 || rest[3] < 0x80) {
		size, length := 3, uint32(rest[2])
		if length >= 0x80 {
			size, length = 4, length&0x7f|uint32(rest[3])<<7
		}
		r.at += size
		r.Chunk += int64(rest[0])
		r.Count, r.Length = uint32(rest[1]), length
		return true
	}
	return len(rest) > 0 && r.long(rest)
}

// long reads a posting of any length.
func (r *Reader) long(rest []byte) bool {
	gap, n := uvarint(rest)
	count, m := uvarint(rest[n:])
	length, k := uvarint(rest[n+m:])
	if n == 0 || m == 0 || k == 0 || gap == 0 || gap > 1<<62 || count > 1<<31 || length > 1<<31 || r.Chunk > 1<<62 {
		r.err, r.at = fmt.Errorf("%w: after chunk %d", ErrCorrupt, r.Chunk), len(r.data)
		return false
	}
	r.at += n + m + k
	r.Chunk += int64(gap)
	r.Count, r.Length = uint32(count), uint32(length)
	return true
}

// Err is what ended the walk early, or nil.
func (r *Reader) Err() error { return r.err }

// uvarint is binary.Uvarint with the common case of one byte in front; n is 0
// when there is no whole number.
func uvarint(b []byte) (v uint64, n int) {
	if len(b) > 0 && b[0] < 0x80 {
		return uint64(b[0]), 1
	}
	v, n = binary.Uvarint(b)
	return v, max(n, 0)
}
