package kernel

import "encoding/binary"

// rowBlock is the part of one row that a header covers, as the file has it.
type rowBlock struct {
	d, m uint16    // IEEE half
	s    [16]uint8 // integer scales, two a block of 32 when the layout has two (int8 then)
	ms   [8]uint8  // integer mins
	q    [256]uint8
}

// parse reads one GGUF block of the type. The bit orders are ggml's
// (ggml-common.h, block_q4_0 and following).
func (b *rowBlock) parse(t Type, src []byte) {
	u16 := binary.LittleEndian.Uint16
	switch t {
	case Q4_0:
		b.d = u16(src)
		b.nibbles(src[2:18], 0)
	case Q4_1:
		b.d, b.m = u16(src), u16(src[2:])
		b.nibbles(src[4:20], 0)
	case Q5_0:
		b.d = u16(src)
		b.nibbles(src[6:22], binary.LittleEndian.Uint32(src[2:]))
	case Q5_1:
		b.d, b.m = u16(src), u16(src[2:])
		b.nibbles(src[8:24], binary.LittleEndian.Uint32(src[4:]))
	case Q8_0:
		b.d = u16(src)
		copy(b.q[:32], src[2:34])
	case Q4_K:
		b.d, b.m = u16(src), u16(src[2:])
		b.scalesK(src[4:16])
		b.nibblesK(src[16:144], nil)
	case Q5_K:
		b.d, b.m = u16(src), u16(src[2:])
		b.scalesK(src[4:16])
		b.nibblesK(src[48:176], src[16:48])
	case Q6_K:
		b.sixes(src)
	}
}

// nibbles reads 16 bytes: low nibbles are columns 0–15, high ones 16–31; bit c
// of high is the fifth bit of column c.
func (b *rowBlock) nibbles(qs []byte, high uint32) {
	for j, x := range qs {
		b.q[j] = x&15 | uint8(high>>j&1)<<4
		b.q[j+16] = x>>4 | uint8(high>>(j+16)&1)<<4
	}
}

// scalesK reads the eight 6-bit scales and eight 6-bit mins of a K block.
func (b *rowBlock) scalesK(p []byte) {
	for j := range 4 {
		b.s[j], b.ms[j] = p[j]&63, p[j+4]&63
		b.s[j+4] = p[j+8]&15 | p[j]>>6<<4
		b.ms[j+4] = p[j+8]>>4 | p[j+4]>>6<<4
	}
}

// nibblesK reads 128 bytes, each 32 of them two blocks of 32 columns, with the
// fifth bits of block i in bit i of high.
func (b *rowBlock) nibblesK(qs, high []byte) {
	for i := range 8 {
		out, in := b.q[32*i:32*i+32], qs[32*(i/2):]
		for j := range out {
			out[j] = in[j] >> (4 * (i % 2)) & 15
			if high != nil {
				out[j] |= high[j] >> i & 1 << 4
			}
		}
	}
}

// sixes reads a Q6_K block; codes become signed (q−32).
func (b *rowBlock) sixes(src []byte) {
	low, high := src[:128], src[128:192]
	copy(b.s[:], src[192:208])
	b.d = binary.LittleEndian.Uint16(src[208:])
	for i := range 8 { // block i: half n = i/4, quarter k = i%4
		n, k := i/4, i%4
		lo, hi := low[64*n+32*(k%2):], high[32*n:]
		for j := range 32 {
			q := lo[j]>>(4*(k/2))&15 | hi[j]>>(2*k)&3<<4
			b.q[32*i+j] = q - 32
		}
	}
}
