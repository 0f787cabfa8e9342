package safetensors

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ragd/inference/quant"
)

// witness is the file that the reference library made.
func witness(tb testing.TB) []byte {
	tb.Helper()
	text, err := os.ReadFile("testdata/witness.txt")
	if err != nil {
		tb.Fatal(err)
	}
	_, body, _ := strings.Cut(string(text), "\n")
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(body))
	if err != nil {
		tb.Fatal(err)
	}
	return raw
}

// file assembles a file from a header and n bytes of data.
func file(header string, n int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, n)...)
}

func save(tb testing.TB, raw []byte) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "model.safetensors")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

func open(tb testing.TB, path string) *File {
	tb.Helper()
	f, err := Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := f.Close(); err != nil {
			tb.Error(err)
		}
	})
	return f
}

func TestReadsWhatTheReferenceWrites(t *testing.T) {
	f := open(t, save(t, witness(t)))
	names := f.Names()
	slices.Sort(names)
	if want := []string{"half", "ids", "matrix", "scalar"}; !slices.Equal(names, want) {
		t.Errorf("names are %v", names)
	}
	for _, c := range []struct {
		name       string
		rows, cols int
		want       []float32
	}{
		{"matrix", 2, 3, []float32{0, 1, 2, 3, 4, 5}},
		{"half", 1, 3, []float32{1, -2, 65504}},
		{"scalar", 1, 1, []float32{2.5}},
	} {
		tensor, ok := f.Tensor(c.name)
		if !ok || tensor.Rows() != c.rows || tensor.Cols() != c.cols {
			t.Errorf("%s is %+v, %t", c.name, tensor, ok)
			continue
		}
		typ, ok := tensor.Type()
		data, err := f.Read(tensor)
		if !ok || err != nil {
			t.Errorf("%s: type %v, %v", c.name, typ, err)
			continue
		}
		got := make([]float32, len(c.want))
		if err := quant.Decode(typ, got, data); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("%s holds %v, want %v, %v", c.name, got, c.want, err)
		}
	}
	ids, _ := f.Tensor("ids")
	if _, ok := ids.Type(); ok || ids.Size != 32 {
		t.Errorf("ids is %+v and has a weight type: %t", ids, ok)
	}
	if _, ok := f.Tensor("missing"); ok {
		t.Error("a missing tensor is found")
	}
}

func TestMalformed(t *testing.T) {
	const one = `{"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`
	huge := binary.LittleEndian.AppendUint64(nil, 1<<60)
	for name, c := range map[string]struct {
		raw  []byte
		want string
	}{
		"empty":               {nil, "needs 8 bytes, has 0"},
		"ten bytes":           {[]byte("\x30\x00\x00\x00\x00\x00\x00\x00{}"), "needs 56 bytes, has 10"},
		"2^60 header":         {huge, "the most is"},
		"no JSON":             {file("hello", 0), "no JSON object"},
		"a list":              {file("[]", 0), "no JSON object"},
		"cut JSON":            {file(one[:len(one)-1], 8), "not valid JSON"},
		"two values":          {file(one+"{}", 8), "more than one"},
		"twice":               {file(one[:len(one)-1]+","+one[1:], 8), "twice"},
		"metadata no text":    {file(`{"__metadata__":{"a":1}}`, 0), "__metadata__"},
		"unknown dtype":       {file(`{"t":{"dtype":"Q9","shape":[2],"data_offsets":[0,8]}}`, 8), "Q9"},
		"negative dimension":  {file(`{"t":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}}`, 8), "tensor"},
		"zero dimension":      {file(`{"t":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}`, 0), "impossible shape"},
		"overflowing shape":   {file(`{"t":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,8]}}`, 8), "impossible shape"},
		"nine dimensions":     {file(`{"t":{"dtype":"U8","shape":[1,1,1,1,1,1,1,1,1],"data_offsets":[0,1]}}`, 1), "9 dimensions"},
		"one offset":          {file(`{"t":{"dtype":"F32","shape":[2],"data_offsets":[8]}}`, 8), "not two"},
		"backwards":           {file(`{"t":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}}`, 8), "impossible data_offsets"},
		"2^64-1 offset":       {file(`{"t":{"dtype":"F32","shape":[2],"data_offsets":[0,18446744073709551615]}}`, 8), "impossible data_offsets"},
		"shape against bytes": {file(`{"t":{"dtype":"F16","shape":[2],"data_offsets":[0,8]}}`, 8), "takes 4 bytes"},
		"past the file":       {file(one, 7), "is cut short"},
		"bytes left over":     {file(one, 9), "1 bytes behind"},
		"hole":                {file(`{"t":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}`, 12), "starts at 4"},
		"overlap": {file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},`+
			`"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}}`, 12), "starts at 4"},
	} {
		t.Run(name, func(t *testing.T) {
			path := save(t, c.raw)
			_, err := Open(path)
			var format *FormatError
			if !errors.As(err, &format) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	if _, err := Open("/nonexistent"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("a folder is accepted")
	}
}

// Whatever the length a file is cut at, it is refused with both sizes.
func TestTruncatedAnywhere(t *testing.T) {
	whole := witness(t)
	for n := range len(whole) {
		var format *FormatError
		_, err := Open(save(t, whole[:n]))
		if !errors.As(err, &format) || format.Needs <= int64(n) || format.Has != int64(n) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
}

func TestShortenedWhileOpen(t *testing.T) {
	path := save(t, witness(t))
	f := open(t, path)
	last := &f.Tensors[len(f.Tensors)-1]
	if err := os.Truncate(path, last.Offset+1); err != nil {
		t.Fatal(err)
	}
	var format *FormatError
	if _, err := f.Read(last); !errors.As(err, &format) || format.Has != last.Offset+1 {
		t.Errorf("reading a tensor that is gone: %v", err)
	}
	for _, made := range []Tensor{{Offset: -1, Size: 1}, {Size: -1}, {Offset: 1, Size: math.MaxInt64}} {
		if _, err := f.Read(&made); err == nil {
			t.Errorf("%+v is read", made)
		}
	}
}

type readerAt []byte

func (r readerAt) ReadAt(p []byte, off int64) (int, error) { return bytes.NewReader(r).ReadAt(p, off) }

func FuzzOpen(f *testing.F) {
	f.Add(witness(f))
	f.Add(file(`{"t":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8]}}`, 8))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := parse("fuzz", readerAt(b), int64(len(b)))
		if err != nil {
			return
		}
		for i := range file.Tensors {
			tensor := &file.Tensors[i]
			data, err := file.Read(tensor)
			if err != nil || int64(len(data)) != tensor.Size {
				t.Fatalf("%+v: %d bytes, %v", tensor, len(data), err)
			}
			if typ, ok := tensor.Type(); ok && len(data) != tensor.Rows()*tensor.Cols()*typ.BlockBytes() {
				t.Fatalf("%+v has %d bytes", tensor, len(data))
			}
		}
	})
}

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "safetensors")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	path := filepath.Join(dir, "model.safetensors")
	if err := os.WriteFile(path, file(`{"w":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}`, 16), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	f, err := Open(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = f.Close() }()
	t, _ := f.Tensor("w")
	fmt.Println(f.Names(), t.DType, t.Rows(), t.Cols())
	// Output: [w] F32 2 2
}
