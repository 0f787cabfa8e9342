package quant

// decodeQ4_K: d, dmin (f16), 12 bytes of packed 6-bit scales and mins, 128
// bytes of nibbles. Each run of 32 bytes serves two sub-blocks of 32 values,
// low nibbles first; x = d·scale·q − dmin·min.
func decodeQ4_K(dst []float32, src []byte) {
	d, dmin := half(src), half(src[2:])
	packed, qs := src[4:16], src[16:144]
	for pair := range 4 {
		q := qs[32*pair : 32*pair+32]
		out := dst[64*pair : 64*pair+64]
		scale, minimum := scaleMin(packed, 2*pair, d, dmin)
		for j, b := range q {
			out[j] = float32(scale*float32(b&15)) - minimum
		}
		scale, minimum = scaleMin(packed, 2*pair+1, d, dmin)
		for j, b := range q {
			out[32+j] = float32(scale*float32(b>>4)) - minimum
		}
	}
}

// decodeQ5_K: as Q4_K, with 32 bytes of fifth bits between scales and
// nibbles: bit s of byte j belongs to value j of sub-block s.
func decodeQ5_K(dst []float32, src []byte) {
	d, dmin := half(src), half(src[2:])
	packed, high, qs := src[4:16], src[16:48], src[48:176]
	for s := range 8 {
		scale, minimum := scaleMin(packed, s, d, dmin)
		out := dst[32*s : 32*s+32]
		shift := 4 * (s & 1)
		for j, b := range qs[32*(s/2) : 32*(s/2)+32] {
			q := b>>shift&15 | high[j]>>s&1<<4
			out[j] = float32(scale*float32(q)) - minimum
		}
	}
}

// scaleMin unpacks scale and min of sub-block s (0–7), multiplied out. The
// first four lie in the low six bits of bytes 0–3 and 4–7; the others have
// their low four bits in bytes 8–11 and the high two on top of the first ones.
func scaleMin(packed []byte, s int, d, dmin float32) (scale, minimum float32) {
	var sc, m byte
	if s < 4 {
		sc, m = packed[s]&63, packed[s+4]&63
	} else {
		sc = packed[s+4]&15 | packed[s-4]>>6<<4
		m = packed[s+4]>>4 | packed[s]>>6<<4
	}
	return d * float32(sc), dmin * float32(m)
}

// decodeQ6_K: 128 bytes of low nibbles, 64 bytes of high pairs, 16 int8 scales,
// d (f16). Each half of the block (128 values) uses 64 low bytes, 32 high bytes
// and 8 scales, one scale for 16 values; x = d·scale·(q−32).
func decodeQ6_K(dst []float32, src []byte) {
	d := half(src[208:])
	for h := range 2 {
		low, high := src[64*h:64*h+64], src[128+32*h:160+32*h]
		scales, out := src[192+8*h:200+8*h], dst[128*h:128*h+128]
		for quarter := range 4 {
			nibble := 4 * (quarter / 2)
			for j := range 32 {
				q := low[32*(quarter%2)+j]>>nibble&15 | high[j]>>(2*quarter)&3<<4
				scale := d * float32(int8(scales[2*quarter+j/16]))
				out[32*quarter+j] = scale * float32(int(q)-32)
			}
		}
	}
}
