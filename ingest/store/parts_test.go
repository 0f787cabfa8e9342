package store

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"ragd/ingest"
)

func FuzzClean(f *testing.F) {
	for _, s := range []string{"", "plain", "한글", "a\x00b", "\xff", "\xed\xa0\x80", "é\x00\xc3"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := clean(s)
		if len(got) != len(s) {
			t.Fatalf("%q: %d bytes became %d", s, len(s), len(got))
		}
		if !utf8.ValidString(got) || strings.IndexByte(got, 0) >= 0 {
			t.Fatalf("%q became %q", s, got)
		}
		if clean(got) != got {
			t.Fatalf("%q is not left alone", got)
		}
		if utf8.ValidString(s) && strings.ReplaceAll(s, "\x00", " ") != got {
			t.Fatalf("%q became %q", s, got)
		}
	})
}

// TestSentenceCodec: a value comes back within half a step of its vector's scale.
func TestSentenceCodec(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dim := rapid.IntRange(1, 40).Draw(t, "dim")
		vectors := rapid.SliceOfN(rapid.SliceOfN(rapid.Float32Range(-2, 2), dim, dim), 0, 5).Draw(t, "vectors")
		for _, v := range vectors {
			v[0] = max(v[0], 1e-3) // a direction
		}
		got, err := decodeSentences(encodeSentences(vectors), len(vectors), dim)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range vectors {
			step := float64(absMax(v)) / 127
			for j, x := range v {
				if off := math.Abs(float64(x - got[i][j])); off > step*0.501 {
					t.Fatalf("vector %d[%d]: %g became %g, step %g", i, j, x, got[i][j], step)
				}
			}
		}
	})
}

func FuzzDecodeSentences(f *testing.F) {
	f.Add([]byte{}, uint8(0), uint8(4))
	f.Add(encodeSentences([][]float32{{1, -1}, {0.5, 0.25}}), uint8(2), uint8(2))
	f.Add([]byte{1, 2, 3}, uint8(1), uint8(1))
	f.Fuzz(func(t *testing.T, blob []byte, count, dim uint8) {
		got, err := decodeSentences(blob, int(count), int(dim))
		if (err == nil) != (blob == nil || len(blob) == int(count)*(4+int(dim))) {
			t.Fatalf("%d bytes for %d × %d: %v", len(blob), count, dim, err)
		}
		if err == nil && blob != nil && len(got) != int(count) {
			t.Fatalf("%d vectors, want %d", len(got), count)
		}
	})
}

func TestSpans(t *testing.T) {
	for _, spans := range [][]ingest.Span{nil, {{Start: 0, End: 3}}, {{Start: 0, End: 3}, {Start: 3, End: 9}}} {
		got := unpackSpans(packSpans(spans))
		if len(got) != len(spans) {
			t.Fatalf("%v became %v", spans, got)
		}
		for i := range spans {
			if got[i] != spans[i] {
				t.Errorf("%v became %v", spans, got)
			}
		}
	}
}
