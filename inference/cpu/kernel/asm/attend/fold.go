package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

// store folds each vector to one float and writes them side by side. However
// many there are, a sum is that of its halves, of sixteen lanes and then of eight,
// then of neighbours, then of the two that are left.
func store(v []reg.VecVirtual, m Mem) {
	if v[0].Size() == 64 {
		store512(v, m)
		return
	}
	switch len(v) {
	case 1:
		x := emit.Fold(v[0])
		x = neighbours(x, x)
		VMOVSS(neighbours(x, x), m)
	case 2:
		x := neighbours(emit.Fold(v[0]), emit.Fold(v[1]))
		VMOVLPS(neighbours(x, x), m)
	case 4:
		x, high := neighbours(halves(v[0], v[2]), halves(v[1], v[3])), XMM()
		VEXTRACTF128(Imm(1), x, high)
		VMOVUPS(neighbours(x.AsX(), high), m)
	case 8:
		x := neighbours(halves(v[0], v[4]), halves(v[1], v[5]))
		y := neighbours(halves(v[2], v[6]), halves(v[3], v[7]))
		VMOVUPS(neighbours(x, y), m)
	}
}

// store512 is store for sixteen lanes.
func store512(v []reg.VecVirtual, m Mem) {
	switch len(v) {
	case 1:
		high := YMM()
		VEXTRACTF64X4(Imm(1), v[0], high)
		VADDPS(high, v[0].AsY(), high)
		store([]reg.VecVirtual{high}, m)
	case 4: // quarters of 0, 2, 1 and 3
		x := quarters(halves512(v[0], v[2]), halves512(v[1], v[3]))
		x = neighbours(x.AsY(), upper(x))
		high := XMM()
		VEXTRACTF128(Imm(1), x, high)
		VMOVUPS(neighbours(x.AsX(), high), m)
	case 8: // in the lower half 0, 1, 4 and 5, in the upper 2, 3, 6 and 7
		x := quarters(halves512(v[0], v[4]), halves512(v[2], v[6]))
		y := quarters(halves512(v[1], v[5]), halves512(v[3], v[7]))
		x = neighbours(x, y)
		VMOVUPS(neighbours(x.AsY(), upper(x)), m)
	}
}

// halves leaves the sum of a's halves in the lower half, and of b's in the upper.
func halves(a, b reg.VecVirtual) reg.VecVirtual {
	x, y := YMM(), YMM()
	VPERM2F128(Imm(0x21), b, a, x) // upper of a, lower of b
	VBLENDPS(Imm(0xf0), b, a, y)   // lower of a, upper of b
	VADDPS(y, x, x)
	return x
}

// halves512 is halves for sixteen lanes.
func halves512(a, b reg.VecVirtual) reg.VecVirtual { return shuffled(VSHUFF64X2, 0x44, 0xee, a, b) }

// quarters adds the halves of each half of a, then of b.
func quarters(a, b reg.VecVirtual) reg.VecVirtual { return shuffled(VSHUFF64X2, 0x88, 0xdd, a, b) }

// neighbours adds lanes 0 and 1, 2 and 3 of a, then of b, in each 128 bits.
func neighbours(a, b reg.Register) reg.VecVirtual { return shuffled(VSHUFPS, 0x88, 0xdd, a, b) }

// shuffled is the sum of two shuffles of a and b.
func shuffled(shuffle func(...Op), even, odd uint64, a, b reg.Register) reg.VecVirtual {
	x, y := like(a), like(a)
	shuffle(Imm(even), b, a, x)
	shuffle(Imm(odd), b, a, y)
	VADDPS(y, x, x)
	return x
}

// upper is the upper half of sixteen lanes.
func upper(v reg.VecVirtual) reg.VecVirtual {
	high := YMM()
	VEXTRACTF64X4(Imm(1), v, high)
	return high
}

// like is a new register as wide as r.
func like(r reg.Register) reg.VecVirtual {
	switch r.Size() {
	case 64:
		return ZMM()
	case 32:
		return YMM()
	}
	return XMM()
}
