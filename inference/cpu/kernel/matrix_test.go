package kernel

import (
	_ "embed"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"
)

//go:embed testdata/dequantised.json
var dequantised []byte

// TestRowAgainstGGML: a row that went through the packed layout decodes to the
// bits that ggml's own decoder gives, in every lane.
func TestRowAgainstGGML(t *testing.T) {
	var golden map[string]struct{ Bytes, Values string }
	if err := json.Unmarshal(dequantised, &golden); err != nil {
		t.Fatal(err)
	}
	for _, typ := range quantTypes {
		name := typeNames[typ]
		g, ok := golden[strings.Replace(strings.ToLower(name), "k", "K", 1)]
		if !ok {
			t.Fatalf("no golden values for %s", name)
		}
		src, want := unhex(t, g.Bytes), floatsOf(unhex(t, g.Values))
		rows := 11
		m, err := Pack(typ, rows, 256, []byte(strings.Repeat(string(src), rows)))
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float32, 256)
		for r := range rows {
			m.Row(got, r)
			same(t, name, got, want)
		}
	}
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func floatsOf(b []byte) []float32 {
	f := make([]float32, len(b)/4)
	for i := range f {
		f[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return f
}

// TestRowFloats: unquantised rows come back as they were.
func TestRowFloats(t *testing.T) {
	r := newRand(1)
	const rows, cols = 13, 7
	for _, typ := range floatTypes {
		src := randomWeights(r, typ, rows, cols)
		m, err := Pack(typ, rows, cols, src)
		if err != nil {
			t.Fatal(err)
		}
		got := make([]float32, cols)
		for row := range rows {
			m.Row(got, row)
			for c, v := range got {
				if want := floatAt(typ, src, row*cols+c); v != want {
					t.Fatalf("%s: row %d column %d is %g, want %g", typeNames[typ], row, c, v, want)
				}
			}
		}
	}
}

func floatAt(typ Type, src []byte, i int) float32 {
	switch typ {
	case F16:
		return f32FromF16(binary.LittleEndian.Uint16(src[2*i:]))
	case BF16:
		return math.Float32frombits(uint32(binary.LittleEndian.Uint16(src[2*i:])) << 16)
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
}

// TestFillInParts: strips filled one by one, in any order, are what Pack makes.
func TestFillInParts(t *testing.T) {
	r := newRand(2)
	const rows = 29
	for _, typ := range append(quantTypes, floatTypes...) {
		src := randomWeights(r, typ, rows, 256)
		whole, err := Pack(typ, rows, 256, src)
		if err != nil {
			t.Fatal(err)
		}
		parts, err := New(typ, rows, 256)
		if err != nil {
			t.Fatal(err)
		}
		n := parts.SrcRowBytes()
		for lo := 24; lo >= 0; lo -= PackRows {
			hi := min(lo+PackRows, rows)
			if err := parts.Fill(lo, hi, src[lo*n:hi*n]); err != nil {
				t.Fatal(err)
			}
		}
		a, b := make([]float32, 256), make([]float32, 256)
		for i := range rows {
			whole.Row(a, i)
			parts.Row(b, i)
			same(t, typeNames[typ], b, a)
		}
	}
}

// TestPackErrors: bad shapes are named, not read past.
func TestPackErrors(t *testing.T) {
	cases := []struct {
		name       string
		typ        Type
		rows, cols int
		src        int
		want       error
	}{
		{"unknown type", 99, 1, 32, 18, ErrType},
		{"no rows", Q4_0, 0, 32, 0, ErrShape},
		{"negative columns", Q4_0, 1, -32, 0, ErrShape},
		{"overflowing shape", F32, math.MaxInt, math.MaxInt, 0, ErrShape},
		{"more than memory", F16, 1 << 20, math.MaxInt >> 27, 2, ErrShape},
		{"half a block", Q4_0, 1, 48, 27, ErrShape},
		{"part of a K block", Q4_K, 1, 32, 18, ErrShape},
		{"too few bytes", Q8_0, 2, 32, 67, ErrShape},
		{"too many bytes", F16, 2, 3, 13, ErrShape},
	}
	for _, c := range cases {
		if _, err := Pack(c.typ, c.rows, c.cols, make([]byte, c.src)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	m, err := New(Q8_0, 16, 32)
	if err != nil {
		t.Fatal(err)
	}
	for _, span := range [][2]int{{-8, 0}, {0, 17}, {8, 0}, {4, 8}} {
		if err := m.Fill(span[0], span[1], nil); !errors.Is(err, ErrShape) {
			t.Errorf("Fill%v: %v", span, err)
		}
	}
}

// TestBytes: the execution formats take no more than a tenth over the file's,
// but for Q6_K (kept in whole bytes) and K scales.
func TestBytes(t *testing.T) {
	want := map[Type]int64{Q4_0: 18, Q4_1: 20, Q5_0: 22, Q5_1: 24, Q8_0: 34}
	for typ, block := range want {
		m, err := New(typ, 64, 320)
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Bytes(); got != 64*10*block {
			t.Errorf("%s takes %d bytes, want %d", typeNames[typ], got, 64*10*block)
		}
		if !m.Quantized() || m.Rows() != 64 || m.Cols() != 320 || m.Type() != typ {
			t.Errorf("%s: %d × %d of type %d", typeNames[typ], m.Rows(), m.Cols(), m.Type())
		}
	}
}

func TestActsResize(t *testing.T) {
	var a Acts
	a.Resize(4, 64)
	q := &a.Q[0]
	a.Resize(2, 64)
	if &a.Q[0] != q || len(a.Q) != 128 || len(a.D) != 4 || len(a.S) != 4 || len(a.O) != 4 {
		t.Errorf("shrinking gave %d codes, %d scales, %d sums", len(a.Q), len(a.D), len(a.S))
	}
	a.Resize(8, 96)
	if len(a.Q) != 768 || len(a.D) != 24 || a.Rows != 8 || a.Cols != 96 {
		t.Errorf("growing gave %d codes, %d scales", len(a.Q), len(a.D))
	}
}

// What a matrix would take is what it takes.
func TestSizeIsWhatNewTakes(t *testing.T) {
	for _, typ := range append([]Type{F32, F16, BF16}, quantTypes...) {
		for _, rows := range []int{1, 8, 13} {
			m, err := New(typ, rows, 512)
			if err != nil {
				t.Fatal(err)
			}
			if got := Size(typ, rows, 512); got != m.Bytes() {
				t.Errorf("type %d, %d rows: %d bytes, not %d", typ, rows, got, m.Bytes())
			}
		}
	}
	if n := Size(Q4_1, 4, 33); n != 0 {
		t.Errorf("%d bytes for columns that are no whole blocks", n)
	}
}
