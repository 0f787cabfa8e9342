package kernel

// avx512vnni is avx2 with products by VPDPBUSD, which needs AVX-512 VNNI and VL;
// three rows and more are multiplied on 512-bit registers, with the same packed
// weights. So is all of attention.
func avx512vnni() *Set {
	s := avx2()
	s.Name = "avx512vnni"
	s.MatMul = vnniMatMul
	s.AttendBlock, s.AttendTile, s.AttendTileF32 = avx512AttendBlock, avx512AttendF16().run, avx512AttendF32().run
	return s
}

// vnniQuant picks the tiles of a quantised type.
func vnniQuant(t Type) quantTiles {
	switch t {
	case Q4_0:
		return quantTiles{vnniQ4_0x1, vnniQ4_0x2, vnniQ4_0x4}
	case Q4_1:
		return quantTiles{vnniQ4_1x1, vnniQ4_1x2, vnniQ4_1x4}
	case Q5_0:
		return quantTiles{vnniQ5_0x1, vnniQ5_0x2, vnniQ5_0x4}
	case Q5_1:
		return quantTiles{vnniQ5_1x1, vnniQ5_1x2, vnniQ5_1x4}
	case Q8_0:
		return quantTiles{vnniQ8_0x1, vnniQ8_0x2, vnniQ8_0x4}
	case Q4_K:
		return quantTiles{vnniQ4_Kx1, vnniQ4_Kx2, vnniQ4_Kx4}
	case Q5_K:
		return quantTiles{vnniQ5_Kx1, vnniQ5_Kx2, vnniQ5_Kx4}
	}
	return quantTiles{vnniQ6_Kx1, vnniQ6_Kx2, vnniQ6_Kx4}
}
