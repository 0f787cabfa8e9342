package kernel

// pairTiles are the products of 3 to 8 activation rows with pairs of strips on
// 512-bit registers.
type pairTiles [6]quantTile

// fewPairRows and mostPairRows are the rows of the first and the last of pairTiles.
const fewPairRows, mostPairRows = 3, 8

// vnniPairs picks the tiles of a quantised type.
func vnniPairs(t Type) pairTiles {
	switch t {
	case Q4_0:
		return pairTiles{vnni512Q4_0x3, vnni512Q4_0x4, vnni512Q4_0x5, vnni512Q4_0x6, vnni512Q4_0x7, vnni512Q4_0x8}
	case Q4_1:
		return pairTiles{vnni512Q4_1x3, vnni512Q4_1x4, vnni512Q4_1x5, vnni512Q4_1x6, vnni512Q4_1x7, vnni512Q4_1x8}
	case Q5_0:
		return pairTiles{vnni512Q5_0x3, vnni512Q5_0x4, vnni512Q5_0x5, vnni512Q5_0x6, vnni512Q5_0x7, vnni512Q5_0x8}
	case Q5_1:
		return pairTiles{vnni512Q5_1x3, vnni512Q5_1x4, vnni512Q5_1x5, vnni512Q5_1x6, vnni512Q5_1x7, vnni512Q5_1x8}
	case Q8_0:
		return pairTiles{vnni512Q8_0x3, vnni512Q8_0x4, vnni512Q8_0x5, vnni512Q8_0x6, vnni512Q8_0x7, vnni512Q8_0x8}
	case Q4_K:
		return pairTiles{vnni512Q4_Kx3, vnni512Q4_Kx4, vnni512Q4_Kx5, vnni512Q4_Kx6, vnni512Q4_Kx7, vnni512Q4_Kx8}
	case Q5_K:
		return pairTiles{vnni512Q5_Kx3, vnni512Q5_Kx4, vnni512Q5_Kx5, vnni512Q5_Kx6, vnni512Q5_Kx7, vnni512Q5_Kx8}
	}
	return pairTiles{vnni512Q6_Kx3, vnni512Q6_Kx4, vnni512Q6_Kx5, vnni512Q6_Kx6, vnni512Q6_Kx7, vnni512Q6_Kx8}
}

// vnniMatMul multiplies one or two rows strip by strip: they take no longer than
// their weights take to come, and memory is read faster in one stream than in two.
// More rows take two strips at once; those tiles ask for the next pair in one stream.
func vnniMatMul(dst []float32, stride int, a *Acts, rlo, rhi int, w *Matrix, clo, chi int) {
	if rhi-rlo >= fewPairRows {
		done := (chi - clo) / (2 * PackRows) * (2 * PackRows)
		pairMatMul(vnniPairs(w.typ), dst, stride, a, rlo, rhi, w, clo, clo+done)
		clo += done
	}
	if clo < chi {
		quantMatMul(vnniQuant(w.typ), dst, stride, a, rlo, rhi, w, clo, chi)
	}
}

// pairMatMul is quantMatMul for whole pairs of strips and at least fewPairRows rows.
func pairMatMul(tiles pairTiles, dst []float32, stride int, a *Acts, rlo, rhi int, w *Matrix, clo, chi int) {
	panel := max(1, panelBytes/(2*w.strip)) * 2 * PackRows
	for c := clo; c < chi; c += panel {
		pairs := min(panel, chi-c) / (2 * PackRows)
		for r := rlo; r < rhi; {
			n := pairRows(rhi - r)
			tiles[n-fewPairRows].run(dst[r*stride+c:], stride, a, r, w, c, pairs)
			r += n
		}
	}
}

// pairRows is the number of rows of the next tile when some are left, such that
// never fewer than fewPairRows are left over.
func pairRows(left int) int {
	if most := mostPairRows + fewPairRows; left >= most || left <= mostPairRows {
		return min(left, mostPairRows)
	}
	return left / 2
}
