package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"ragd/inference/quant"
)

func TestReadsWhatLlamaCppWrites(t *testing.T) {
	f := open(t, witness(t))
	if f.Version != 3 || f.Architecture() != "llama" {
		t.Errorf("version %d, architecture %q", f.Version, f.Architecture())
	}
	for _, c := range []struct {
		key  string
		want int64
	}{
		{"n.u8", 200},
		{"n.i8", -100},
		{"n.u16", 60000},
		{"n.i16", -30000},
		{"n.u32", 4000000000},
		{"n.i32", -2000000000},
		{"n.i64", -(1 << 62)},
	} {
		if n, ok := f.Int(c.key); !ok || n != c.want {
			t.Errorf("Int(%s) = %d, %t", c.key, n, ok)
		}
		u, ok := f.Uint(c.key)
		if ok != (c.want >= 0) || ok && u != uint64(c.want) {
			t.Errorf("Uint(%s) = %d, %t", c.key, u, ok)
		}
		if x, ok := f.Float(c.key); !ok || x != float64(c.want) {
			t.Errorf("Float(%s) = %v, %t", c.key, x, ok)
		}
	}
	if u, ok := f.Uint("n.u64"); !ok || u != 1<<63 {
		t.Errorf("n.u64 is %d, %t", u, ok)
	}
	if n, ok := f.Int("n.u64"); ok {
		t.Errorf("n.u64 fits an int64 as %d", n)
	}
	if x, ok := f.Float("n.f64"); !ok || x != 0.1 {
		t.Errorf("n.f64 is %v, %t", x, ok)
	}
	if b, ok := f.Bool("n.bool"); !ok || !b {
		t.Errorf("n.bool is %t, %t", b, ok)
	}
	if s, ok := f.String("n.string"); !ok || s != "가나다 🙂" {
		t.Errorf("n.string is %q, %t", s, ok)
	}
}

func TestReadsArraysOfLlamaCpp(t *testing.T) {
	f := open(t, witness(t))
	if s, ok := f.Strings("a.string"); !ok || !slices.Equal(s, []string{"", "▁a", "b"}) {
		t.Errorf("a.string is %q, %t", s, ok)
	}
	if n, ok := f.Ints("a.i32"); !ok || !slices.Equal(n, []int64{1, -2, 3}) {
		t.Errorf("a.i32 is %d, %t", n, ok)
	}
	if x, ok := f.Floats("a.f32"); !ok || !slices.Equal(x, []float32{0.25, -1.5}) {
		t.Errorf("a.f32 is %v, %t", x, ok)
	}
	if b, ok := f.Bytes("a.bytes"); !ok || !bytes.Equal(b, []byte{0, 1, 255}) {
		t.Errorf("a.bytes is %v, %t", b, ok)
	}
}

func TestReadsTensorsOfLlamaCpp(t *testing.T) {
	f := open(t, witness(t))
	for _, c := range []struct {
		name       string
		typ        quant.Type
		rows, cols int
		want       []float32
	}{
		{"matrix", quant.F32, 2, 3, []float32{0, 1, 2, 3, 4, 5}},
		{"half", quant.F16, 1, 3, []float32{1, -2, 65504}},
		{"quantised", quant.Q8_0, 2, 32, nil},
	} {
		tensor, ok := f.Tensor(c.name)
		if !ok || tensor.Type != c.typ || tensor.Rows() != c.rows || tensor.Cols() != c.cols {
			t.Errorf("%s is %+v, %t", c.name, tensor, ok)
			continue
		}
		data, err := f.Read(tensor)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		got := make([]float32, c.rows*c.cols)
		if err := quant.Decode(c.typ, got, data); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		if c.want != nil && !slices.Equal(got, c.want) {
			t.Errorf("%s holds %v, want %v", c.name, got, c.want)
		}
		if c.want == nil && (math.Abs(float64(got[0])+1) > 0.01 || math.Abs(float64(got[63])-1) > 0.01) {
			t.Errorf("%s runs from %v to %v", c.name, got[0], got[63])
		}
	}
}

// A getter of the wrong type says no and does not convert.
func TestGettersAskForTheirType(t *testing.T) {
	f := open(t, witness(t))
	for _, key := range []string{"missing", "a.i32", "n.bool"} {
		if _, ok := f.Uint(key); ok {
			t.Errorf("Uint(%s) is ok", key)
		}
		if _, ok := f.Int(key); ok {
			t.Errorf("Int(%s) is ok", key)
		}
		if _, ok := f.Float(key); ok {
			t.Errorf("Float(%s) is ok", key)
		}
	}
	for _, key := range []string{"missing", "n.u8", "a.string"} {
		_, isString := f.String(key)
		_, isBool := f.Bool(key)
		_, isFloats := f.Floats(key)
		_, isInts := f.Ints(key)
		_, isBytes := f.Bytes(key)
		if isString || isBool || isFloats || isInts || isBytes {
			t.Errorf("%s: string %t, bool %t, floats %t, ints %t, bytes %t", key, isString, isBool, isFloats, isInts, isBytes)
		}
	}
	if _, ok := f.Strings("a.i32"); ok {
		t.Error("Strings of an array of numbers is ok")
	}
}

// Results belong to the caller.
func TestResultsAreCopies(t *testing.T) {
	f := open(t, witness(t))
	s, _ := f.Strings("a.string")
	s[1] = "changed"
	b, _ := f.Bytes("a.bytes")
	b[0] = 9
	keys := f.Keys()
	keys[0] = "changed"
	again, _ := f.Strings("a.string")
	bytesAgain, _ := f.Bytes("a.bytes")
	if again[1] != "▁a" || bytesAgain[0] != 0 || f.Keys()[0] == "changed" {
		t.Errorf("the file's own values were changed: %q, %v", again, bytesAgain)
	}
}

// Whatever the length a file is cut at, it is refused with both sizes.
func TestTruncatedAnywhere(t *testing.T) {
	whole := sample(t)
	for n := range len(whole) {
		err := refuse(t, whole[:n])
		if err.Needs <= int64(n) || err.Has != int64(n) {
			t.Fatalf("cut at %d: %v", n, err)
		}
		if want := fmt.Sprintf("needs %d bytes, has %d", err.Needs, n); !strings.Contains(err.Error(), want) {
			t.Fatalf("cut at %d: %q lacks %q", n, err, want)
		}
	}
}

func TestShortenedWhileOpen(t *testing.T) {
	path := save(t, sample(t))
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	last := f.Tensors[len(f.Tensors)-1]
	if err := os.Truncate(path, last.Offset+3); err != nil {
		t.Fatal(err)
	}
	var format *FormatError
	_, err = f.Read(&last)
	if !errors.As(err, &format) || format.Needs != last.Offset+last.Size || format.Has != last.Offset+3 {
		t.Errorf("reading a tensor that is gone: %v", err)
	}
	if _, err := f.Read(&f.Tensors[0]); err != nil {
		t.Errorf("a tensor before the cut: %v", err)
	}
}

// A Tensor that a caller made up cannot read outside the file.
func TestReadChecksTheTensor(t *testing.T) {
	f := open(t, sample(t))
	for _, tensor := range []Tensor{
		{Name: "negative", Offset: -1, Size: 1},
		{Name: "negative size", Offset: 0, Size: -1},
		{Name: "past the end", Offset: math.MaxInt64 - 1, Size: 2},
		{Name: "too long", Offset: 0, Size: math.MaxInt64},
	} {
		if _, err := f.Read(&tensor); err == nil {
			t.Errorf("%s is read", tensor.Name)
		}
	}
}

func TestNotRegular(t *testing.T) {
	var format *FormatError
	if _, err := Open(t.TempDir()); !errors.As(err, &format) {
		t.Errorf("a folder: %v", err)
	}
	if _, err := Open("/nonexistent/model.gguf"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
}
