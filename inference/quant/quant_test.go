package quant

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"math"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

type golden struct {
	Tool, Command  string
	Decode, Encode []struct {
		Type          string
		Bytes, Values []byte
	}
}

func readGolden(t *testing.T) golden {
	t.Helper()
	raw, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

var allTypes = []Type{F32, F16, BF16, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, Q4_K, Q5_K, Q6_K}

func typeByName(t *testing.T, name string) Type {
	t.Helper()
	for _, typ := range allTypes {
		if typ.String() == name {
			return typ
		}
	}
	t.Fatalf("no type is called %q", name)
	return 0
}

func floats(b []byte) []float32 {
	f := make([]float32, len(b)/4)
	for i := range f {
		f[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return f
}

func TestDecodeGolden(t *testing.T) {
	for _, c := range readGolden(t).Decode {
		want := floats(c.Values)
		got := make([]float32, len(want))
		if err := Decode(typeByName(t, c.Type), got, c.Bytes); err != nil {
			t.Errorf("%s: %v", c.Type, err)
			continue
		}
		for i := range want {
			same := math.Float32bits(got[i]) == math.Float32bits(want[i]) || got[i] == want[i]
			if !same && !(math.IsNaN(float64(got[i])) && math.IsNaN(float64(want[i]))) {
				t.Errorf("%s: value %d is %v, want %v", c.Type, i, got[i], want[i])
			}
		}
	}
}

func TestEncodeGolden(t *testing.T) {
	for _, c := range readGolden(t).Encode {
		got := make([]byte, len(c.Bytes))
		if err := Encode(typeByName(t, c.Type), got, floats(c.Values)); err != nil {
			t.Errorf("%s: %v", c.Type, err)
			continue
		}
		if d := cmp.Diff(c.Bytes, got); d != "" {
			t.Errorf("%s: bytes differ (-want +got):\n%s", c.Type, d)
		}
	}
}

func TestF16RoundTripsEveryValue(t *testing.T) {
	for h := range 1 << 16 {
		in := uint16(h)
		out := F32ToF16(F16ToF32(in))
		isNaN := in&0x7c00 == 0x7c00 && in&0x3ff != 0
		if isNaN {
			in |= 0x200 // a signalling NaN comes back quiet
		}
		if out != in {
			t.Fatalf("%#04x came back as %#04x", h, out)
		}
	}
}

func TestF32ToF16Rounding(t *testing.T) {
	inf := float32(math.Inf(1))
	for _, c := range []struct {
		in   float32
		want uint16
	}{
		{0, 0},
		{float32(math.Copysign(0, -1)), 0x8000},
		{1, 0x3c00},
		{-2, 0xc000},
		{65504, 0x7bff},
		{65519.996, 0x7bff},
		{65520, 0x7c00},
		{inf, 0x7c00},
		{-inf, 0xfc00},
		{0x1p-24, 1},
		{0x1p-25, 0},          // tie to even
		{0x1.8p-24, 2},        // tie to even
		{0x1.000002p-25, 1},   // just above the tie
		{1 + 0x1p-11, 0x3c00}, // tie to even
		{1 + 0x3p-11, 0x3c02}, // tie to even
		{0x1.ffep-15, 0x400},  // rounds up into the normal range
	} {
		if got := F32ToF16(c.in); got != c.want {
			t.Errorf("F32ToF16(%v) = %#04x, want %#04x", c.in, got, c.want)
		}
	}
	if got := F16ToF32(F32ToF16(float32(math.NaN()))); !math.IsNaN(float64(got)) {
		t.Errorf("NaN became %v", got)
	}
}

func TestBF16(t *testing.T) {
	for _, c := range []struct {
		in   uint32
		want uint16
	}{
		{0x3f800000, 0x3f80},
		{0x3f808000, 0x3f80}, // tie to even
		{0x3f818000, 0x3f82}, // tie to even
		{0x3f808001, 0x3f81},
		{0x7f7fffff, 0x7f80}, // rounds to infinity
		{0x7f800000, 0x7f80},
		{0x7f800001, 0x7fc0}, // a NaN that truncation would turn into infinity
	} {
		if got := F32ToBF16(math.Float32frombits(c.in)); got != c.want {
			t.Errorf("F32ToBF16(%#08x) = %#04x, want %#04x", c.in, got, c.want)
		}
	}
}

// What Encode writes lies within one step of the value.
func TestEncodeIsClose(t *testing.T) {
	steps := map[Type]float32{Q4_0: 8, Q4_1: 15, Q5_0: 16, Q5_1: 31, Q8_0: 127}
	rapid.Check(t, func(t *rapid.T) {
		src := rapid.SliceOfN(rapid.Float32Range(-1000, 1000), 64, 64).Draw(t, "x")
		for typ, levels := range steps {
			size, err := typ.RowBytes(len(src))
			if err != nil {
				t.Fatal(err)
			}
			raw, back := make([]byte, size), make([]float32, len(src))
			if err := errors.Join(Encode(typ, raw, src), Decode(typ, back, raw)); err != nil {
				t.Fatal(err)
			}
			for i := range src {
				block := src[i/32*32 : i/32*32+32]
				low, high := bounds(block)
				span := max(abs(extreme(block)), high-low)
				tolerance := span/levels*1.01 + span*0x1p-9 + 0x1p-12
				if abs(back[i]-src[i]) > tolerance {
					t.Fatalf("%s: %v came back as %v, tolerance %v", typ, src[i], back[i], tolerance)
				}
			}
		}
	})
}

// Not-a-number and infinite weights must not crash the encoder.
func TestEncodeTakesAnyFloat(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	src := make([]float32, 32)
	for _, odd := range []float32{nan, inf, -inf, math.MaxFloat32, math.SmallestNonzeroFloat32} {
		src[5], src[31] = odd, -odd
		for _, typ := range []Type{Q4_0, Q4_1, Q5_0, Q5_1, Q8_0} {
			if err := Encode(typ, make([]byte, typ.BlockBytes()), src); err != nil {
				t.Errorf("%s with %v: %v", typ, odd, err)
			}
		}
	}
}

func TestLengths(t *testing.T) {
	for _, typ := range allTypes {
		if !typ.Valid() {
			t.Errorf("%s is not valid", typ)
		}
		n := typ.BlockSize()
		if size, err := typ.RowBytes(3 * n); err != nil || size != 3*typ.BlockBytes() {
			t.Errorf("%s: three blocks take %d bytes, %v", typ, size, err)
		}
		if err := Decode(typ, make([]float32, n), make([]byte, typ.BlockBytes()-1)); !errors.Is(err, ErrLength) {
			t.Errorf("%s: short source gives %v", typ, err)
		}
		if n == 1 {
			continue
		}
		if _, err := typ.RowBytes(n + 1); !errors.Is(err, ErrLength) {
			t.Errorf("%s: a ragged row gives %v", typ, err)
		}
	}
	if _, err := F32.RowBytes(math.MaxInt); !errors.Is(err, ErrLength) {
		t.Errorf("an overflowing row gives %v", err)
	}
	if _, err := F32.RowBytes(-1); !errors.Is(err, ErrLength) {
		t.Errorf("a negative row gives %v", err)
	}
	unknown := Type(99)
	if unknown.Valid() || unknown.String() != "type(99)" || unknown.BlockBytes() != 0 {
		t.Errorf("type 99 is %s", unknown)
	}
	if err := Decode(unknown, nil, nil); !errors.Is(err, ErrType) {
		t.Errorf("decoding type 99 gives %v", err)
	}
	if err := Encode(Q4_K, make([]byte, 144), make([]float32, 256)); !errors.Is(err, ErrType) {
		t.Errorf("encoding Q4_K gives %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(uint32(Q4_K), make([]byte, 144))
	f.Add(uint32(Q8_0), []byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, id uint32, src []byte) {
		typ := Type(id)
		values := typ.BlockSize()
		if values > 0 {
			values *= len(src) / typ.BlockBytes()
		}
		err := Decode(typ, make([]float32, values), src)
		whole := typ.Valid() && len(src)%typ.BlockBytes() == 0
		if whole != (err == nil) {
			t.Fatalf("%s, %d bytes: %v", typ, len(src), err)
		}
	})
}
