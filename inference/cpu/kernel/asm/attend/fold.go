package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"ragd/inference/cpu/kernel/asm/emit"
)

// store folds each vector to one float and writes them side by side. However
// many there are, a sum is that of its halves, then of neighbours, then of the
// two that are left.
func store(v []reg.VecVirtual, m Mem) {
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

// halves leaves the sum of a's halves in the lower half, and of b's in the upper.
func halves(a, b reg.VecVirtual) reg.VecVirtual {
	x, y := YMM(), YMM()
	VPERM2F128(Imm(0x21), b, a, x) // upper of a, lower of b
	VBLENDPS(Imm(0xf0), b, a, y)   // lower of a, upper of b
	VADDPS(y, x, x)
	return x
}

// neighbours adds lanes 0 and 1, 2 and 3 of a, then of b, in each 128 bits.
func neighbours(a, b reg.Register) reg.VecVirtual {
	even, odd := like(a), like(a)
	VSHUFPS(Imm(0x88), b, a, even)
	VSHUFPS(Imm(0xdd), b, a, odd)
	VADDPS(odd, even, even)
	return even
}

// like is a new register as wide as r.
func like(r reg.Register) reg.VecVirtual {
	if r.Size() == 32 {
		return YMM()
	}
	return XMM()
}
