package kernel

import "encoding/binary"

// fillQuant interleaves one row into its strip.
func (m *Matrix) fillQuant(r int, src []byte) {
	lay, lane := &m.lay, r%PackRows
	strip := m.data[r/PackRows*m.strip:]
	var b rowBlock
	for g := range m.cols / lay.cols() {
		b.parse(m.typ, src[g*lay.srcLen:(g+1)*lay.srcLen])
		group := strip[g*lay.group() : (g+1)*lay.group()]
		binary.LittleEndian.PutUint16(group[2*lane:], b.d)
		if lay.mins {
			binary.LittleEndian.PutUint16(group[2*(PackRows+lane):], b.m)
		}
		for i := range lay.per {
			lay.put(group[lay.header()+i*lay.block():], &b, i, lane)
		}
	}
}

// put writes block i of a row into lane of a packed block.
func (l *layout) put(dst []byte, b *rowBlock, i, lane int) {
	for s := range l.subs {
		dst[s*PackRows+lane] = b.s[i*l.subs+s]
	}
	if l.subs > 0 && l.mins {
		dst[l.subs*PackRows+lane] = b.ms[i]
	}
	codes := dst[l.scales()+4*lane:]
	if l.bits == 8 {
		spreadWords(codes, b.bytes[i][:])
		return
	}
	spreadWords(codes, b.nibbles[i][:])
	if l.bits == 5 {
		for j := range 4 {
			codes[128+j] = everyFourth(b.fifth[i] >> j)
		}
	}
}

// spreadWords writes every four bytes of src 32 bytes apart.
func spreadWords(dst, src []byte) {
	for g := 0; g < len(src); g += 4 {
		binary.NativeEndian.PutUint32(dst[8*g:], binary.NativeEndian.Uint32(src[g:]))
	}
}

// everyFourth gathers bits 0, 4, 8 … 28 of x.
func everyFourth(x uint32) uint8 {
	x &= 0x11111111
	x = (x | x>>3) & 0x03030303
	x = (x | x>>6) & 0x000f000f
	return uint8(x | x>>12)
}

// laneBlock is one row's part of a packed block, as the kernels see it:
// value = d·s·q + min, s being s[0] for the first 16 columns and s[1] after, and q
// signed.
type laneBlock struct {
	d, min float32
	s      [2]int32
	q      [BlockCols]int8
}

// lane reads the part of one row from block i of a group.
func (l *layout) lane(b *laneBlock, group []byte, i, lane int) {
	b.d = f32FromF16(binary.LittleEndian.Uint16(group[2*lane:]))
	b.min = 0
	if l.mins {
		b.min = f32FromF16(binary.LittleEndian.Uint16(group[2*(PackRows+lane):]))
	}
	blk := group[l.header()+i*l.block():]
	b.s = [2]int32{1, 1}
	switch l.subs {
	case 1:
		s := int32(blk[lane])
		b.s = [2]int32{s, s}
		b.min *= -float32(blk[PackRows+lane])
	case 2:
		b.s = [2]int32{int32(int8(blk[lane])), int32(int8(blk[PackRows+lane]))}
	}
	l.codes(&b.q, blk[l.scales():], lane)
	for c := range b.q {
		b.q[c] -= l.zero
	}
}

func (l *layout) codes(q *[BlockCols]int8, codes []byte, lane int) {
	if l.bits == 8 {
		for c := range q {
			q[c] = int8(codes[32*(c/4)+4*lane+c%4])
		}
		return
	}
	for c := range 16 {
		x := codes[32*(c/4)+4*lane+c%4]
		q[c], q[c+16] = int8(x&15), int8(x>>4)
	}
	if l.bits == 5 {
		for c := range q {
			q[c] |= int8(codes[128+4*lane+c%4] >> (c / 4) & 1 << 4)
		}
	}
}

// rowQuant decodes a row. d·s and d·s·q are exact in float32 (at most 11 + 7 + 6
// significant bits), so a value is rounded once, where its min is added.
func (m *Matrix) rowQuant(dst []float32, r int) {
	lay := &m.lay
	strip := m.data[r/PackRows*m.strip:]
	var b laneBlock
	for blk := range m.cols / BlockCols {
		group := strip[blk/lay.per*lay.group():]
		lay.lane(&b, group, blk%lay.per, r%PackRows)
		out := dst[blk*BlockCols : (blk+1)*BlockCols]
		for c := range out {
			out[c] = b.d * float32(b.s[c/16]) * float32(b.q[c])
			if lay.mins {
				out[c] += b.min
			}
		}
	}
}
