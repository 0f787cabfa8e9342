//go:build cuda && cgo

package cuda

import (
	"encoding/binary"
	"fmt"

	"ragd/inference/quant"
)

// format is how the device keeps a weight type (see kernel/format.cuh).
type format struct {
	name   string // of its kernels
	bits   int    // of a code: 4 or 8; 0 for plain values
	size   int    // bytes of a plain value
	min    bool   // there is a plane of m
	scales int    // integer scales a block: 0, 1 or 2
}

var formats = map[quant.Type]format{
	quant.F32:  {name: "f32", size: 4},
	quant.F16:  {name: "f16", size: 2},
	quant.BF16: {name: "bf16", size: 2},
	quant.Q4_0: {name: "q4_0", bits: 4},
	quant.Q4_1: {name: "q4_1", bits: 4, min: true},
	quant.Q5_0: {name: "q8_0", bits: 8},
	quant.Q5_1: {name: "q5_1", bits: 8, min: true},
	quant.Q8_0: {name: "q8_0", bits: 8},
	quant.Q4_K: {name: "q4_k", bits: 4, min: true, scales: 1},
	quant.Q5_K: {name: "q5_k", bits: 8, min: true, scales: 1},
	quant.Q6_K: {name: "q6_k", bits: 8, scales: 2},
}

// planes are a packed matrix: one run of memory, and where its parts begin in it.
type planes struct {
	data           []byte
	d, m, s, ms    int
	size           int // of data
	codes, headers int // blocks written so far
	format         format
}

const planeAlign = 256

// pack lays rows × cols values stored as GGUF stores them out for the device.
func pack(t quant.Type, rows, cols int, data []byte) (*planes, error) {
	f, ok := formats[t]
	if !ok {
		return nil, fmt.Errorf("%w: %s", quant.ErrType, t)
	}
	p := f.lay(rows, cols)
	if f.bits == 0 {
		p.data = data
		return p, nil
	}
	p.data = make([]byte, p.size)
	for size := t.BlockBytes(); len(data) > 0; data = data[size:] {
		p.add(t, data[:size])
	}
	return p, nil
}

// lay says where the parts of a matrix begin.
func (f format) lay(rows, cols int) *planes {
	if f.bits == 0 {
		return &planes{format: f, size: rows * cols * f.size}
	}
	blocks := rows * (cols / 32)
	headers := blocks
	if f.scales > 0 {
		headers /= 8
	}
	p := &planes{format: f}
	end := blocks * 4 * f.bits
	next := func(size int) int {
		at := (end + planeAlign - 1) / planeAlign * planeAlign
		end = at + size
		return at
	}
	p.d = next(2 * headers)
	if f.min {
		p.m = next(2 * headers)
	}
	if f.scales > 0 {
		p.s = next(blocks * f.scales)
	}
	if f.min && f.scales > 0 {
		p.ms = next(blocks)
	}
	p.size = end
	return p
}

// header stores the scales d and m of the next block or of the next eight.
func (p *planes) header(d, m []byte) {
	copy(p.data[p.d+2*p.headers:], d[:2])
	if p.format.min {
		copy(p.data[p.m+2*p.headers:], m[:2])
	}
	p.headers++
}

// block stores the codes of 32 columns.
func (p *planes) block(q *[32]byte) {
	if p.format.bits == 8 {
		copy(p.data[32*p.codes:], q[:])
	} else {
		out := p.data[16*p.codes : 16*p.codes+16]
		for j := range out {
			out[j] = q[j] | q[j+16]<<4
		}
	}
	p.codes++
}

// add stores one GGUF block. The bit orders are ggml's (ggml-common.h, block_q4_0
// and following).
func (p *planes) add(t quant.Type, src []byte) {
	switch t {
	case quant.Q4_0:
		p.header(src, nil)
		p.nibbles(src[2:18], 0, 0)
	case quant.Q4_1:
		p.header(src, src[2:])
		p.nibbles(src[4:20], 0, 0)
	case quant.Q5_0:
		p.header(src, nil)
		p.nibbles(src[6:22], binary.LittleEndian.Uint32(src[2:]), 16)
	case quant.Q5_1:
		p.header(src, src[2:])
		p.nibbles(src[8:24], binary.LittleEndian.Uint32(src[4:]), 0)
	case quant.Q8_0:
		p.header(src, nil)
		p.block((*[32]byte)(src[2:34]))
	case quant.Q4_K:
		p.header(src, src[2:])
		p.scalesK(src[4:16])
		p.nibblesK(src[16:144], nil)
	case quant.Q5_K:
		p.header(src, src[2:])
		p.scalesK(src[4:16])
		p.nibblesK(src[48:176], src[16:48])
	case quant.Q6_K:
		p.header(src[208:], nil)
		p.sixes(src)
	}
}

// nibbles stores 16 bytes: low nibbles are columns 0–15, high ones 16–31; bit c of
// high is the fifth bit of column c; less is subtracted from every code.
func (p *planes) nibbles(qs []byte, high uint32, less byte) {
	var q [32]byte
	for j, x := range qs {
		q[j] = x&15 | byte(high>>j&1)<<4 - less
		q[j+16] = x>>4 | byte(high>>(j+16)&1)<<4 - less
	}
	p.block(&q)
}

// scalesK stores the eight 6-bit scales and mins of a K block.
func (p *planes) scalesK(x []byte) {
	s, ms := p.data[p.s+p.codes:], p.data[p.ms+p.codes:]
	for j := range 4 {
		s[j], ms[j] = x[j]&63, x[j+4]&63
		s[j+4] = x[j+8]&15 | x[j]>>6<<4
		ms[j+4] = x[j+8]>>4 | x[j+4]>>6<<4
	}
}

// nibblesK stores 128 bytes, each 32 of them two blocks, with the fifth bits of block
// i in bit i of high.
func (p *planes) nibblesK(qs, high []byte) {
	for i := range 8 {
		var q [32]byte
		in := qs[32*(i/2):]
		for j := range q {
			q[j] = in[j] >> (4 * (i % 2)) & 15
			if high != nil {
				q[j] |= high[j] >> i & 1 << 4
			}
		}
		p.block(&q)
	}
}

// sixes stores a Q6_K block; codes become signed (q−32).
func (p *planes) sixes(src []byte) {
	copy(p.data[p.s+2*p.codes:], src[192:208])
	for i := range 8 { // block i: half n = i/4, quarter k = i%4
		n, k := i/4, i%4
		lo, hi := src[64*n+32*(k%2):], src[128+32*n:]
		var q [32]byte
		for j := range q {
			q[j] = lo[j]>>(4*(k/2))&15 | hi[j]>>(2*k)&3<<4 - 32
		}
		p.block(&q)
	}
}
