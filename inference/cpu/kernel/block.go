package kernel

import "encoding/binary"

// rowBlock is the part of one row that a header covers, up to eight blocks of 32
// columns, on its way from the file to a strip.
type rowBlock struct {
	d, m uint16    // IEEE half
	s    [16]uint8 // integer scales, two a block when the layout has two (int8 then)
	ms   [8]uint8  // integer mins

	// Codes of four and five bits: column c is the low nibble of byte c, column
	// c+16 the high one, and bit c of fifth the fifth bit of column c.
	nibbles [8][16]uint8
	fifth   [8]uint32
	// Codes of eight bits.
	bytes [8][32]uint8
}

// parse reads one GGUF block of the type. The bit orders are ggml's
// (ggml-common.h, block_q4_0 and following).
func (b *rowBlock) parse(t Type, src []byte) {
	u16, u32 := binary.LittleEndian.Uint16, binary.LittleEndian.Uint32
	b.d, b.m = u16(src), u16(src[2:])
	switch t {
	case Q4_0:
		copy(b.nibbles[0][:], src[2:18])
	case Q4_1:
		copy(b.nibbles[0][:], src[4:20])
	case Q5_0:
		b.fifth[0] = u32(src[2:])
		copy(b.nibbles[0][:], src[6:22])
	case Q5_1:
		b.fifth[0] = u32(src[4:])
		copy(b.nibbles[0][:], src[8:24])
	case Q8_0:
		copy(b.bytes[0][:], src[2:34])
	case Q4_K:
		b.scalesK(src[4:16])
		b.nibblesK(src[16:144])
	case Q5_K:
		b.scalesK(src[4:16])
		b.fifthK(src[16:48])
		b.nibblesK(src[48:176])
	case Q6_K:
		b.d = u16(src[208:])
		copy(b.s[:], src[192:208])
		b.sixes(src[:128], src[128:192])
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

// nibblesK reads 128 bytes, each 32 of them two blocks of 32 columns: the low
// nibbles are the first.
func (b *rowBlock) nibblesK(qs []byte) {
	for i := range b.nibbles {
		in, shift := qs[32*(i/2):][:32], 4*(i%2)
		for j := range 16 {
			b.nibbles[i][j] = in[j]>>shift&15 | in[j+16]>>shift&15<<4
		}
	}
}

// fifthK reads 32 bytes: bit i of byte c is the fifth bit of column c of block i.
func (b *rowBlock) fifthK(high []byte) {
	clear(b.fifth[:])
	for c, x := range high {
		for i := range b.fifth {
			b.fifth[i] |= uint32(x>>i&1) << c
		}
	}
}

// sixes reads the low nibbles and high pairs of a Q6_K block; codes become
// signed (q−32).
func (b *rowBlock) sixes(low, high []byte) {
	for i := range b.bytes { // half n = i/4 of the block, quarter k = i%4 of that
		n, k := i/4, i%4
		lo, hi := low[64*n+32*(k%2):][:32], high[32*n:][:32]
		for j := range b.bytes[i] {
			q := lo[j]>>(4*(k/2))&15 | hi[j]>>(2*k)&3<<4
			b.bytes[i][j] = q - 32
		}
	}
}
