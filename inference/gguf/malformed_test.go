package gguf

import (
	"runtime"
	"strings"
	"testing"

	"ragd/inference/quant"
)

func TestMalformed(t *testing.T) {
	const f32, q4 = uint32(quant.F32), uint32(quant.Q4_0)
	entry := func(kind uint32) *raw { return newRaw(3, 0, 1).text("k").u32(kind) }
	for name, c := range map[string]struct {
		file []byte
		want string
	}{
		"ten bytes":              {[]byte("GGUF\x03\x00\x00\x00\x01\x00"), "needs 16 bytes, has 10"},
		"empty":                  {nil, "needs 4 bytes, has 0"},
		"another format":         {[]byte("PK\x03\x04 not a model at all"), "not a GGUF file"},
		"version 1":              {newRaw(1, 0, 0).b, "version 1"},
		"version 4":              {newRaw(4, 0, 0).b, "version 4"},
		"big endian":             {newRaw(0x03000000, 0, 0).b, "big-endian"},
		"2^60 entries":           {newRaw(3, 0, 1<<60).b, "has 24"},
		"2^60 tensors":           {newRaw(3, 1<<60, 0).b, "has 24"},
		"2^64-1 of both":         {newRaw(3, 1<<64-1, 1<<64-1).b, "has 24"},
		"long key":               {newRaw(3, 0, 1).text(strings.Repeat("k", 65536)).u32(4).u32(0).b, "65536 bytes"},
		"key past the file":      {newRaw(3, 0, 1).u64(1 << 62).u64(0).b, "cut short"},
		"empty key":              {newRaw(3, 0, 1).u64(0).u32(4).u32(0).b, "empty name"},
		"key twice":              {newRaw(3, 0, 2).text("k").u32(4).u32(1).text("k").u32(4).u32(1).b, "twice"},
		"unknown value type":     {entry(13).u64(0).b, "unknown value type 13"},
		"unknown element type":   {entry(9).u32(77).u64(0).b, "unknown element type 77"},
		"array of arrays":        {entry(9).u32(9).u64(1).u32(0).u64(0).b, "arrays of arrays"},
		"2^60 numbers":           {entry(9).u32(12).u64(1 << 60).b, "cut short"},
		"2^61 numbers overflow":  {entry(9).u32(12).u64(1 << 61).b, "cut short"},
		"2^60 strings":           {entry(9).u32(8).u64(1 << 60).b, "cut short"},
		"string past the file":   {entry(8).u64(1 << 40).b, "cut short"},
		"string in array":        {entry(9).u32(8).u64(1).u64(1 << 63).b, "cut short"},
		"no dimension":           {newRaw(3, 1, 0).text("t").u32(0).u32(f32).u64(0).data(64), "0 dimensions"},
		"five dimensions":        {newRaw(3, 1, 0).tensor("t", f32, 0, 1, 1, 1, 1, 1).data(64), "5 dimensions"},
		"2^32-1 dimensions":      {newRaw(3, 1, 0).text("t").u32(1<<32 - 1).data(64), "4294967295 dimensions"},
		"zero dimension":         {newRaw(3, 1, 0).tensor("t", f32, 0, 4, 0).data(64), "impossible dimensions"},
		"overflowing dimensions": {newRaw(3, 1, 0).tensor("t", f32, 0, 1<<33, 1<<33).data(64), "impossible dimensions"},
		"overflowing bytes":      {newRaw(3, 1, 0).tensor("t", f32, 0, 1<<62).data(64), "too long"},
		"overflowing rows":       {newRaw(3, 1, 0).tensor("t", f32, 0, 4, 1<<60).data(64), "impossible dimensions"},
		"unknown tensor type":    {newRaw(3, 1, 0).tensor("t", 99, 0, 32).data(64), "type(99)"},
		"ragged row":             {newRaw(3, 1, 0).tensor("t", q4, 0, 33).data(64), "no multiple of 32"},
		"tensor past the file":   {newRaw(3, 1, 0).tensor("t", f32, 64, 16).data(64), "needs 192 bytes, has 128"},
		"offset 2^64-1":          {newRaw(3, 1, 0).tensor("t", f32, 1<<64-1, 4).data(64), "out of range"},
		"offset 2^63-32":         {newRaw(3, 1, 0).tensor("t", f32, 1<<63-32, 16).data(64), "out of range"},
		"crooked offset":         {newRaw(3, 1, 0).tensor("t", f32, 4, 4).data(64), "no multiple of the alignment"},
		"tensor twice":           {newRaw(3, 2, 0).tensor("t", f32, 0, 4).tensor("t", f32, 32, 4).data(64), "twice"},
		"overlap":                {newRaw(3, 2, 0).tensor("a", f32, 0, 12).tensor("b", f32, 32, 4).data(64), "overlaps"},
		"same place":             {newRaw(3, 2, 0).tensor("a", f32, 0, 4).tensor("b", f32, 0, 4).data(64), "overlaps"},
		"alignment 0":            {aligned(0).data(64), "power of two"},
		"alignment 24":           {aligned(24).data(64), "power of two"},
		"alignment 2^31":         {aligned(1 << 31).data(64), "power of two"},
		"alignment is a string":  {newRaw(3, 0, 1).text(alignmentKey).u32(8).text("32").data(64), "power of two"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := refuse(t, c.file); !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q does not say %q", err, c.want)
			}
		})
	}
}

func aligned(n uint32) *raw {
	return newRaw(3, 1, 1).text(alignmentKey).u32(uint32(kindU32)).u32(n).tensor("t", uint32(quant.F32), 0, 4)
}

func TestOtherAlignment(t *testing.T) {
	head := aligned(256)
	for len(head.b)%256 != 0 {
		head.b = append(head.b, 0)
	}
	f := open(t, append(head.b, make([]byte, 16)...))
	if f.Tensors[0].Offset != 256 {
		t.Errorf("data starts at %d", f.Tensors[0].Offset)
	}
}

func TestVersion2(t *testing.T) {
	f := open(t, newRaw(2, 1, 0).tensor("t", uint32(quant.F32), 0, 4).data(16))
	if f.Version != 2 || f.Tensors[0].Size != 16 {
		t.Errorf("version %d, tensor %+v", f.Version, f.Tensors[0])
	}
}

// Counts that a small file cannot hold must not make the reader allocate.
func TestLiesCostNoMemory(t *testing.T) {
	files := [][]byte{
		newRaw(3, 1<<40, 0).b,
		newRaw(3, 0, 1<<40).b,
		newRaw(3, 0, 1).text("k").u32(9).u32(8).u64(1 << 40).b,
		newRaw(3, 0, 1).text("k").u32(9).u32(0).u64(1 << 40).b,
		newRaw(3, 1, 0).tensor("t", uint32(quant.F32), 0, 1<<40).data(64),
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, file := range files {
		refuse(t, file)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 16<<20 {
		t.Errorf("%d bytes were allocated for files of at most %d bytes", grown, len(files[4]))
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(witness(f))
	f.Add(sample(f))
	f.Add(aligned(256).data(300))
	f.Add(newRaw(2, 1, 0).tensor("t", uint32(quant.Q4_K), 0, 256).data(144))
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
			values := make([]float32, tensor.Rows()*tensor.Cols())
			if err := quant.Decode(tensor.Type, values, data); err != nil {
				t.Fatalf("%+v: %v", tensor, err)
			}
		}
		for _, key := range file.Keys() {
			file.Float(key)
			file.Ints(key)
			file.Floats(key)
			file.Strings(key)
		}
	})
}
