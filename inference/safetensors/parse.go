package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
)

const (
	lengthBytes = 8
	// maxHeader is the limit of the reference implementation.
	maxHeader = 100_000_000
	maxDims   = 8
)

func parse(path string, r io.ReaderAt, size int64) (*File, error) {
	f := &File{Path: path, data: r, size: size, byName: map[string]int{}}
	header, err := f.header()
	if err != nil {
		return nil, err
	}
	start := int64(lengthBytes + len(header))
	if err := f.entries(header); err != nil {
		return nil, err
	}
	if err := f.place(start); err != nil {
		return nil, err
	}
	for i := range f.Tensors {
		f.byName[f.Tensors[i].Name] = i
	}
	return f, nil
}

func (f *File) fault(place, format string, args ...any) error {
	return &FormatError{Path: f.Path, Place: place, Reason: fmt.Sprintf(format, args...)}
}

// header reads the JSON part.
func (f *File) header() ([]byte, error) {
	var length [lengthBytes]byte
	if err := f.fill(length[:], 0); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(length[:])
	if n > maxHeader {
		return nil, f.fault("header", "length %d, the most is %d: not a safetensors file?", n, maxHeader)
	}
	if needs := lengthBytes + int64(n); needs > f.size {
		return nil, &FormatError{Path: f.Path, Place: "header", Needs: needs, Has: f.size}
	}
	header := make([]byte, n)
	return header, f.fill(header, lengthBytes)
}

func (f *File) fill(b []byte, offset int64) error {
	n, err := f.data.ReadAt(b, offset)
	switch {
	case n == len(b):
		return nil
	case errors.Is(err, io.EOF):
		return &FormatError{Path: f.Path, Place: "header", Needs: offset + int64(len(b)), Has: offset + int64(n)}
	}
	return fmt.Errorf("%s: header: %w", f.Path, err)
}

// entry is a tensor's value in the header.
type entry struct {
	DType   string   `json:"dtype"`
	Shape   []uint64 `json:"shape"`
	Offsets []uint64 `json:"data_offsets"`
}

// entries reads the header key by key, since a map would hide a name that
// stands there twice.
func (f *File) entries(header []byte) error {
	dec := json.NewDecoder(bytes.NewReader(header))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return f.fault("header", "is no JSON object")
	}
	seen := map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		name, ok := t.(string)
		if err != nil || !ok {
			return f.fault("header", "is not valid JSON")
		}
		if seen[name] {
			return f.fault(fmt.Sprintf("tensor %q", name), "appears twice")
		}
		seen[name] = true
		if err := f.entry(dec, name); err != nil {
			return err
		}
	}
	if _, err := dec.Token(); err != nil {
		return f.fault("header", "is not valid JSON")
	}
	if rest, err := io.ReadAll(dec.Buffered()); err != nil || len(bytes.TrimSpace(rest)) > 0 {
		return f.fault("header", "has more than one JSON value")
	}
	return nil
}

func (f *File) entry(dec *json.Decoder, name string) error {
	if name == "__metadata__" {
		var notes map[string]string
		if err := dec.Decode(&notes); err != nil {
			return f.fault("header", "__metadata__: %v", err)
		}
		return nil
	}
	place := fmt.Sprintf("tensor %q", name)
	var e entry
	if err := dec.Decode(&e); err != nil {
		return f.fault(place, "%v", err)
	}
	t, fault := e.tensor(name)
	if fault != "" {
		return f.fault(place, "%s", fault)
	}
	f.Tensors = append(f.Tensors, t)
	return nil
}

// tensor checks an entry by itself. Offset is still the distance from the
// start of the data.
func (e *entry) tensor(name string) (t Tensor, fault string) {
	width := elementBytes(e.DType)
	switch {
	case width == 0:
		return t, fmt.Sprintf("unknown dtype %q", e.DType)
	case len(e.Shape) > maxDims:
		return t, fmt.Sprintf("%d dimensions, the most is %d", len(e.Shape), maxDims)
	case len(e.Offsets) != 2:
		return t, fmt.Sprintf("%d data_offsets, not two", len(e.Offsets))
	}
	from, to := e.Offsets[0], e.Offsets[1]
	if from > to || to > math.MaxInt64 {
		return t, fmt.Sprintf("impossible data_offsets %v", e.Offsets)
	}
	size := width
	for _, d := range e.Shape {
		high, low := bits.Mul64(size, d)
		if d == 0 || high != 0 || low > math.MaxInt {
			return t, fmt.Sprintf("impossible shape %v", e.Shape)
		}
		size = low
	}
	if size != to-from {
		return t, fmt.Sprintf("%s of shape %v takes %d bytes, data_offsets say %d", e.DType, e.Shape, size, to-from)
	}
	return Tensor{Name: name, DType: e.DType, Shape: e.Shape, Offset: int64(from), Size: int64(size)}, ""
}

func elementBytes(dtype string) uint64 {
	switch dtype {
	case "F64", "I64", "U64":
		return 8
	case "F32", "I32", "U32":
		return 4
	case "F16", "BF16", "I16", "U16":
		return 2
	case "I8", "U8", "BOOL", "F8_E4M3", "F8_E5M2":
		return 1
	}
	return 0
}

// place sorts the tensors by their data, checks that they fill it and turns
// their offsets into offsets in the file.
func (f *File) place(start int64) error {
	slices.SortFunc(f.Tensors, func(a, b Tensor) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(a.Size, b.Size), cmp.Compare(a.Name, b.Name))
	})
	end := int64(0)
	for i := range f.Tensors {
		t := &f.Tensors[i]
		if t.Offset != end {
			return f.fault(fmt.Sprintf("tensor %q", t.Name), "data starts at %d, that before it ends at %d", t.Offset, end)
		}
		if end = t.Offset + t.Size; end > f.size-start {
			return &FormatError{Path: f.Path, Place: fmt.Sprintf("tensor %q", t.Name), Needs: saturate(start, end), Has: f.size}
		}
		t.Offset += start
	}
	if extra := f.size - start - end; extra != 0 {
		return f.fault("data", "%d bytes behind the last tensor", extra)
	}
	return nil
}

// saturate adds without overflow.
func saturate(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
