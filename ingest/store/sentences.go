package store

import (
	"encoding/binary"
	"fmt"
	"math"

	"ragd/ingest"
)

// encodeSentences packs a chunk's sentence vectors: for each a little-endian
// float32 scale and dim int8 values; value × scale gives the vector back within
// half a scale. nil stays nil.
func encodeSentences(vectors [][]float32) []byte {
	if vectors == nil {
		return nil
	}
	out := []byte{}
	for _, v := range vectors {
		scale := absMax(v) / 127
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(scale))
		for _, x := range v {
			out = append(out, byte(int8(math.RoundToEven(float64(x/scale)))))
		}
	}
	return out
}

func absMax(v []float32) float32 {
	var m float32
	for _, x := range v {
		m = max(m, x, -x)
	}
	return m
}

// decodeSentences unpacks what encodeSentences packed, count vectors of dim
// values. A nil blob gives nil.
func decodeSentences(blob []byte, count, dim int) ([][]float32, error) {
	if blob == nil {
		return nil, nil
	}
	if want := count * (4 + dim); len(blob) != want {
		return nil, fmt.Errorf("sentence vectors of %d bytes, expected %d", len(blob), want)
	}
	flat := make([]float32, count*dim)
	out := make([][]float32, count)
	for i := range out {
		v := flat[i*dim : (i+1)*dim : (i+1)*dim]
		scale := math.Float32frombits(binary.LittleEndian.Uint32(blob))
		for j, b := range blob[4 : 4+dim] {
			v[j] = float32(int8(b)) * scale
		}
		out[i], blob = v, blob[4+dim:]
	}
	return out, nil
}

func packSpans(spans []ingest.Span) []int32 {
	out := make([]int32, 0, 2*len(spans))
	for _, s := range spans {
		out = append(out, int32(s.Start), int32(s.End))
	}
	return out
}

func unpackSpans(flat []int32) []ingest.Span {
	if len(flat) == 0 {
		return nil
	}
	out := make([]ingest.Span, len(flat)/2)
	for i := range out {
		out[i] = ingest.Span{Start: int(flat[2*i]), End: int(flat[2*i+1])}
	}
	return out
}
