package main

import (
	"fmt"
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

// pairTile emits one kernel on 512-bit registers: some activation rows against
// pairs of strips, the first strip in the lower half of every register and the
// second in the upper one. Weights are unpacked once for all rows, and a row's
// scale, sum and codes are broadcast as they are read.
type pairTile struct {
	format
	rows int

	q, d, s    reg.GPVirtual // activations: codes, scales, sums or offsets of row 0
	byRow      [8]span       // from row 0 to a row's codes
	byScale    [8]span       // and to its scales
	head, w    reg.GPVirtual // header and block of the first strip
	next       reg.GPVirtual // bytes from there to the second strip
	coming     reg.GPVirtual // where the following pair has been asked for to
	facc, iacc []reg.VecVirtual
	consts     map[string]reg.VecVirtual
}

// span is the distance reg·scale in bytes, nothing without a register.
type span struct {
	reg   reg.Register
	scale uint8
}

func (s span) from(base reg.GPVirtual, disp int) Mem {
	m := Mem{Base: base, Disp: disp}
	if s.reg != nil {
		m.Index, m.Scale = s.reg, s.scale
	}
	return m
}

// pairRows are the fewest and the most rows of a tile. One or two are multiplied
// no faster than they are on 256 bits.
var pairRows = [2]int{3, 8}

func pairs() {
	set := vnni()
	nibble, bit4 = emit.Fill32("nibble", 0x0f0f0f0f), emit.Fill32("bit4", 0x10101010)
	for _, f := range set.formats {
		for rows := pairRows[0]; rows <= pairRows[1]; rows++ {
			t := &pairTile{format: f, rows: rows}
			t.generate()
		}
	}
}

func zmms(n int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, n)
	for i := range v {
		v[i] = ZMM()
	}
	return v
}

func (t *pairTile) generate() {
	emit.Begin(fmt.Sprintf("vnni512%sx%d", t.name, t.rows), signature,
		fmt.Sprintf("multiplies %d activation rows by pairs of strips of %s weights at once.", t.rows, t.name))
	t.pointers()
	t.hoist()

	Label("pair")
	t.facc = zmms(t.rows)
	for _, acc := range t.facc {
		VPXORD(acc, acc, acc)
	}
	groups := emit.Ptr("groups")
	Label("group")
	t.head = t.w
	t.group()
	DECQ(groups)
	JNZ(LabelRef("group"))
	t.store()
	t.rewind()
	DECQ(emit.Arg("strips"))
	JNZ(LabelRef("pair"))
	emit.End()
}

func (t *pairTile) pointers() {
	t.q, t.d, t.s, t.w = emit.Ptr("q"), emit.Ptr("d"), emit.Ptr(t.perBlock()), emit.Ptr("w")
	t.distances()
	t.next, t.coming = GP64(), GP64()
	groupBytes := t.header() + t.per*(t.scales()+32*t.bits)
	IMUL3Q(U32(uint32(groupBytes)), emit.Ptr("groups"), t.next)
	LEAQ(Mem{Base: t.w, Index: t.next, Scale: 2}, t.coming)
}

// distances finds each row by as few registers as there are: a row is c bytes of
// codes and c/8 of scales.
func (t *pairTile) distances() {
	cols, eighth := emit.Ptr("cols"), GP64()
	MOVQ(cols, eighth)
	SHRQ(Imm(3), eighth)
	t.byRow[1], t.byRow[2], t.byRow[4] = span{cols, 1}, span{cols, 2}, span{cols, 4}
	t.byScale[1], t.byScale[2], t.byScale[4] = span{eighth, 1}, span{eighth, 2}, span{eighth, 4}
	times := func(n int, of reg.GPVirtual) reg.GPVirtual {
		r := GP64()
		if n == 7 {
			LEAQ(Mem{Base: of, Index: of, Scale: 2}, r)
			LEAQ(Mem{Base: r, Index: of, Scale: 4}, r)
		} else {
			LEAQ(Mem{Base: of, Index: of, Scale: uint8(n - 1)}, r)
		}
		return r
	}
	for odd := 3; odd < t.rows; odd += 2 {
		r := times(odd, eighth)
		t.byScale[odd], t.byRow[odd] = span{r, 1}, span{r, 8}
	}
	if t.rows > 6 {
		t.byRow[6], t.byScale[6] = span{times(3, cols), 2}, span{t.byScale[3].reg, 2}
	}
}

func (t *pairTile) hoist() {
	t.consts = map[string]reg.VecVirtual{}
	keep := func(m Mem) {
		v := ZMM()
		VPBROADCASTD(m, v)
		t.consts[m.Symbol.Name] = v
	}
	switch {
	case t.subs == 2:
		keep(thirtyTwo)
	case t.bits == 8:
		keep(sign)
	default:
		keep(nibble)
	}
	if t.bits == 5 {
		keep(bit4)
	}
}

func (t *pairTile) constant(m Mem) reg.VecVirtual { return t.consts[m.Symbol.Name] }

// store writes the pair's outputs, which are neighbours, and moves dst on.
func (t *pairTile) store() {
	dst, stride := emit.Ptr("dst"), emit.Ptr("stride")
	for r, acc := range t.facc {
		VMOVUPS(acc, emit.At(dst))
		if r+1 < t.rows {
			LEAQ(Mem{Base: dst, Index: stride, Scale: 4}, dst)
		}
	}
	ADDQ(Imm(64), emit.Arg("dst"))
}

// rewind moves the activation pointers back to the start of their rows, and w
// behind the second strip.
func (t *pairTile) rewind() {
	back := GP64()
	Load(Param("cols"), back)
	SUBQ(back, t.q)
	SHRQ(Imm(3), back)
	SUBQ(back, t.d)
	SUBQ(back, t.s)
	ADDQ(t.next, t.w)
}

// group emits a header and its blocks.
func (t *pairTile) group() {
	if t.per == 1 {
		t.block(t.header())
		ADDQ(U32(uint32(t.header()+32*t.bits)), t.w)
		return
	}
	t.ahead(t.header())
	t.head = GP64()
	MOVQ(t.w, t.head)
	ADDQ(U32(uint32(t.header())), t.w)
	n := GP64()
	MOVQ(U32(uint32(t.per)), n)
	Label("block")
	t.block(0)
	ADDQ(U32(uint32(t.scales()+32*t.bits)), t.w)
	DECQ(n)
	JNZ(LabelRef("block"))
}

// block emits one block of 32 columns whose scales lie off bytes after w.
func (t *pairTile) block(off int) {
	t.ahead(off + t.scales() + 32*t.bits)
	t.iacc = zmms(t.rows)
	codes := off + t.scales()
	switch {
	case t.subs == 2:
		t.dotHalves(off, codes)
	case t.bits == 8:
		t.start()
		t.dotBytes(codes)
	default:
		t.start()
		t.dotNibbles(codes)
	}
	if t.subs == 1 {
		t.scale(t.iacc, t.ints(off, false))
	}
	t.accumulate(off)
	ADDQ(Imm(32), t.q)
	ADDQ(Imm(4), t.d)
	ADDQ(Imm(4), t.s)
}

// ahead asks for as much of the following pair as this one is read, from its
// start to its end: memory is read faster in one stream than in two.
func (t *pairTile) ahead(size int) {
	for at := 0; at < 2*size; at += 64 {
		PREFETCHT0(Mem{Base: t.coming, Disp: at})
	}
	ADDQ(U32(uint32(2*size)), t.coming)
}

// second is the memory of the second strip that belongs to p's disp.
func (t *pairTile) second(p reg.GPVirtual, disp int) Mem {
	return Mem{Base: p, Index: t.next, Scale: 1, Disp: disp}
}

// load reads 32 bytes of either strip.
func (t *pairTile) load(disp int) reg.VecVirtual {
	v := ZMM()
	VBROADCASTI64X4(Mem{Base: t.w, Disp: disp}, v)
	VINSERTI64X4(Imm(1), t.second(t.w, disp), v, v)
	return v
}

// halves loads eight IEEE halves of either strip's header.
func (t *pairTile) halves(disp int) reg.VecVirtual {
	h, v := YMM(), ZMM()
	VBROADCASTI32X4(Mem{Base: t.head, Disp: disp}, h)
	VINSERTI32X4(Imm(1), t.second(t.head, disp), h, h)
	VCVTPH2PS(h, v)
	return v
}

// ints loads eight integer scales of either strip.
func (t *pairTile) ints(disp int, signed bool) reg.VecVirtual {
	b, v := XMM(), ZMM()
	VMOVQ(Mem{Base: t.w, Disp: disp}, b)
	VPINSRQ(Imm(1), t.second(t.w, disp), b, b)
	if signed {
		VPMOVSXBD(b, v)
	} else {
		VPMOVZXBD(b, v)
	}
	return v
}

func (t *pairTile) scale(sums []reg.VecVirtual, by reg.VecVirtual) {
	for _, sum := range sums {
		VPMULLD(by, sum, sum)
	}
}

// start sets the sums to zero or to −zero·ΣQ.
func (t *pairTile) start() {
	for r, sum := range t.iacc {
		if t.zero == 0 {
			VPXORD(sum, sum, sum)
		} else {
			t.offset(r, sum)
		}
	}
}

// offset is −zero·ΣQ of a row's block, from O = −128·ΣQ.
func (t *pairTile) offset(r int, v reg.VecVirtual) {
	VPBROADCASTD(t.byScale[r].from(t.s, 0), v)
	if t.zero < 128 {
		VPSRAD(Imm(uint64(bits.TrailingZeros(128/uint(t.zero)))), v, v)
	}
}

// dot adds the products of the unsigned codes u with column group g of every row.
func (t *pairTile) dot(sums []reg.VecVirtual, u reg.VecVirtual, g int) {
	for r, sum := range sums {
		vpdpbusd(t.byRow[r].from(t.q, 4*g), u, sum, "BCST")
	}
}

func (t *pairTile) dotBytes(codes int) {
	for g := range 8 {
		u := t.load(codes + 32*g)
		VPXORD(t.constant(sign), u, u)
		t.dot(t.iacc, u, g)
	}
}

func (t *pairTile) dotNibbles(codes int) {
	var fifth reg.VecVirtual
	if t.bits == 5 {
		fifth = t.load(codes + 128)
	}
	for v := range 4 {
		low, high := t.load(codes+32*v), ZMM()
		VPSRLW(Imm(4), low, high)
		VPANDD(t.constant(nibble), low, low)
		VPANDD(t.constant(nibble), high, high)
		if t.bits == 5 {
			t.addFifth(low, fifth, v)
			t.addFifth(high, fifth, v+4)
		}
		t.dot(t.iacc, low, v)
		t.dot(t.iacc, high, v+4)
	}
}

// addFifth moves bit g of every byte of fifth to bit 4 of q.
func (t *pairTile) addFifth(q, fifth reg.VecVirtual, g int) {
	b := ZMM()
	from := b
	switch {
	case g < 4:
		VPSLLW(Imm(uint64(4-g)), fifth, b)
	case g == 4:
		from = fifth
	default:
		VPSRLW(Imm(uint64(g-4)), fifth, b)
	}
	VPANDD(t.constant(bit4), from, b)
	VPORD(b, q, q)
}

// dotHalves does the 16 columns of either scale apart. The sums of the first
// start from c = −32·ΣQ over them, those of the second from −32·ΣQ over all
// columns less c.
func (t *pairTile) dotHalves(off, codes int) {
	late := zmms(t.rows)
	for r, sum := range t.iacc {
		c, all := late[r], ZMM()
		VPXORD(c, c, c)
		for g := range 4 {
			vpdpbusd(t.byRow[r].from(t.q, 4*g), t.constant(thirtyTwo), c, "BCST")
		}
		VPXORD(sum, sum, sum)
		VPSUBD(c, sum, sum)
		t.offset(r, all)
		VPADDD(all, c, c)
	}
	for half, sums := range [][]reg.VecVirtual{t.iacc, late} {
		for g := 4 * half; g < 4*half+4; g++ {
			u := t.load(codes + 32*g)
			VPADDB(t.constant(thirtyTwo), u, u)
			t.dot(sums, u, g)
		}
		t.scale(sums, t.ints(off+8*half, true))
	}
	for r, sum := range late {
		VPADDD(sum, t.iacc[r], t.iacc[r])
	}
}

// accumulate adds the block to the float accumulators: integer sum times d·D,
// then min times S, always in this order.
func (t *pairTile) accumulate(off int) {
	d := t.halves(0)
	var min reg.VecVirtual
	if t.mins {
		min = t.halves(16)
		if t.subs > 0 {
			ints := t.ints(off+8*t.subs, false)
			VCVTDQ2PS(ints, ints)
			VMULPS(ints, min, min)
		}
	}
	for r, sum := range t.iacc {
		scale := ZMM()
		VMULPS_BCST(t.byScale[r].from(t.d, 0), d, scale)
		VCVTDQ2PS(sum, sum)
		VFMADD231PS(scale, sum, t.facc[r])
		switch {
		case t.mins && t.subs > 0: // K formats subtract their mins
			VFNMADD231PS_BCST(t.byScale[r].from(t.s, 0), min, t.facc[r])
		case t.mins:
			VFMADD231PS_BCST(t.byScale[r].from(t.s, 0), min, t.facc[r])
		}
	}
}
