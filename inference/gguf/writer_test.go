package gguf

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"ragd/inference/quant"
)

type readerAt []byte

func (r readerAt) ReadAt(p []byte, off int64) (int, error) { return bytes.NewReader(r).ReadAt(p, off) }

// What is written is read back, whatever it is.
func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var out bytes.Buffer
		w := NewWriter(&out)
		text := rapid.MapOfN(rapid.StringN(1, 8, 32), rapid.SliceOf(rapid.String()), 0, 4).Draw(t, "strings")
		for k, v := range text {
			if err := w.Set("s."+k, v); err != nil {
				t.Fatal(err)
			}
		}
		ints := rapid.SliceOf(rapid.Int64()).Draw(t, "ints")
		floats := rapid.SliceOf(rapid.Float32Range(-1e30, 1e30)).Draw(t, "floats")
		if err := errors.Join(w.Set("ints", ints), w.Set("floats", floats)); err != nil {
			t.Fatal(err)
		}
		sizes := rapid.SliceOfN(rapid.IntRange(1, 70), 0, 5).Draw(t, "sizes")
		for i, n := range sizes {
			data := bytes.Repeat([]byte{byte(i + 1)}, 2*n)
			if err := w.Add(fmt.Sprint("t", i), []uint64{uint64(n)}, quant.F16, data); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Finish(); err != nil {
			t.Fatal(err)
		}
		f, err := parse("memory", readerAt(out.Bytes()), int64(out.Len()))
		if err != nil {
			t.Fatal(err)
		}
		for k, want := range text {
			if got, ok := f.Strings("s." + k); !ok || !slices.Equal(got, want) {
				t.Fatalf("strings %q are %q, want %q", k, got, want)
			}
		}
		gotInts, _ := f.Ints("ints")
		gotFloats, _ := f.Floats("floats")
		if !slices.Equal(gotInts, ints) || !slices.Equal(gotFloats, floats) {
			t.Fatalf("got %v and %v, want %v and %v", gotInts, gotFloats, ints, floats)
		}
		for i, n := range sizes {
			data, err := f.Read(&f.Tensors[i])
			if err != nil || !bytes.Equal(data, bytes.Repeat([]byte{byte(i + 1)}, 2*n)) {
				t.Fatalf("tensor %d holds %v, %v", i, data, err)
			}
		}
	})
}

func TestWriterRefuses(t *testing.T) {
	w := NewWriter(io.Discard)
	if err := errors.Join(w.Set("k", "v"), w.Add("t", []uint64{4}, quant.F32, make([]byte, 16))); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{
		"empty key":      w.Set("", "v"),
		"long key":       w.Set(strings.Repeat("k", 65536), "v"),
		"long name":      w.Add(strings.Repeat("t", 65536), []uint64{4}, quant.F32, make([]byte, 16)),
		"key twice":      w.Set("k", "v"),
		"alignment":      w.Set("general.alignment", uint32(64)),
		"a map":          w.Set("m", map[string]int{}),
		"a plain int":    w.Set("i", 1),
		"empty name":     w.Add("", []uint64{4}, quant.F32, make([]byte, 16)),
		"tensor twice":   w.Add("t", []uint64{4}, quant.F32, make([]byte, 16)),
		"no dimension":   w.Add("u", nil, quant.F32, nil),
		"zero dimension": w.Add("u", []uint64{0}, quant.F32, nil),
		"five":           w.Add("u", []uint64{1, 1, 1, 1, 1}, quant.F32, make([]byte, 4)),
		"wrong size":     w.Add("u", []uint64{4}, quant.F32, make([]byte, 15)),
		"ragged":         w.Add("u", []uint64{33}, quant.Q8_0, make([]byte, 34)),
	} {
		if err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

func TestWriterTakesEveryKind(t *testing.T) {
	w := NewWriter(io.Discard)
	for i, v := range []any{
		"s",
		[]string{"s"},
		true,
		[]bool{true},
		uint8(1),
		[]uint8{1},
		int8(1),
		[]int8{1},
		uint16(1),
		[]uint16{1},
		int16(1),
		[]int16{1},
		uint32(1),
		[]uint32{1},
		int32(1),
		[]int32{1},
		uint64(1),
		[]uint64{1},
		int64(1),
		[]int64{1},
		float32(1),
		[]float32{1},
		float64(1),
		[]float64{1},
		[]string{},
		[]int32{},
	} {
		if err := w.Set(fmt.Sprint(i), v); err != nil {
			t.Errorf("%T: %v", v, err)
		}
	}
}

// A file that cannot be completed does not appear.
func TestCreateLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	failure := errors.New("no more data")
	err := Create(filepath.Join(dir, "m.gguf"), func(*Writer) error { return failure })
	if !errors.Is(err, failure) {
		t.Errorf("error is %v", err)
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

type full struct{ room int }

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.room {
		return 0, io.ErrShortWrite
	}
	f.room -= len(p)
	return len(p), nil
}

func TestFinishTellsOfAFullDisk(t *testing.T) {
	for room := range 200 {
		w := NewWriter(&full{room})
		if err := w.Add("t", []uint64{64}, quant.F32, make([]byte, 256)); err != nil {
			t.Fatal(err)
		}
		if err := w.Finish(); !errors.Is(err, io.ErrShortWrite) {
			t.Fatalf("room for %d bytes: %v", room, err)
		}
	}
}

func Example() {
	dir, err := os.MkdirTemp("", "gguf")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "tiny.gguf")
	err = Create(path, func(w *Writer) error {
		return errors.Join(
			w.Set("general.architecture", "llama"),
			w.Add("output_norm.weight", []uint64{2}, quant.F32, []byte{0, 0, 128, 63, 0, 0, 0, 64}),
		)
	})
	if err != nil {
		log.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	t, _ := f.Tensor("output_norm.weight")
	data, err := f.Read(t)
	if err != nil {
		log.Fatal(err)
	}
	values := make([]float32, t.Rows()*t.Cols())
	if err := quant.Decode(t.Type, values, data); err != nil {
		log.Fatal(err)
	}
	fmt.Println(f.Architecture(), t.Type, t.Dims, values)
	// Output: llama F32 [2] [1 2]
}
