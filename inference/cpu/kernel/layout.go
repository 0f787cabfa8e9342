package kernel

// layout describes how the quantised blocks of PackRows weight rows (a strip)
// are interleaved. A strip is cols/(32·per) groups; a group is one header and
// per blocks of 32 columns:
//
//	header   8 × f16 d, then 8 × f16 m if mins
//	block    subs × 8 bytes of integer scales, then 8 bytes of integer mins if
//	         subs and mins, then the codes
//
// The codes are written in groups of four columns so that one 32-byte vector
// holds four columns of each of the eight rows, and no kernel ever sums across
// lanes. Column c of row r lies
//
//	bits 8   at byte 32·(c/4) + 4r + c%4
//	bits 4   at byte 32·(c%16/4) + 4r + c%4, low nibble for c < 16, else high
//	bits 5   as bits 4, with the fifth bit in bit c/4 of byte 128 + 4r + c%4
//
// The value of a code q is d·s·(q − zero) + min with s = 1 without integer scales
// and min = m, −m·ms with integer mins, or 0. Every d, m, s is stored exactly as
// the file has it.
type layout struct {
	bits   int  // 4, 5 (unsigned) or 8 (signed)
	per    int  // blocks a header
	mins   bool // the header has m
	subs   int  // integer scales a row and block: 0, 1, or 2 (one for 16 columns)
	zero   int8 // the code of value 0 where there are no mins
	srcLen int  // bytes of the GGUF block that a header's columns come from
}

// layouts maps the quantised types to their execution format.
var layouts = map[Type]layout{
	Q4_0: {bits: 4, per: 1, zero: 8, srcLen: 18},
	Q4_1: {bits: 4, per: 1, mins: true, srcLen: 20},
	Q5_0: {bits: 5, per: 1, zero: 16, srcLen: 22},
	Q5_1: {bits: 5, per: 1, mins: true, srcLen: 24},
	Q8_0: {bits: 8, per: 1, srcLen: 34},
	Q4_K: {bits: 4, per: 8, mins: true, subs: 1, srcLen: 144},
	Q5_K: {bits: 5, per: 8, mins: true, subs: 1, srcLen: 176},
	Q6_K: {bits: 8, per: 8, subs: 2, srcLen: 210},
}

// header, scales and block are the sizes in bytes of a header, of the integer
// scales and mins of a block, and of a whole block.
func (l *layout) header() int {
	if l.mins {
		return 2 * 2 * PackRows
	}
	return 2 * PackRows
}

func (l *layout) scales() int {
	if l.subs > 0 && l.mins {
		return PackRows * (l.subs + 1)
	}
	return PackRows * l.subs
}

func (l *layout) block() int { return l.scales() + l.bits*PackRows*BlockCols/8 }

// group is the size in bytes of a header and its blocks.
func (l *layout) group() int { return l.header() + l.per*l.block() }

// cols is the number of columns of a group.
func (l *layout) cols() int { return l.per * BlockCols }
