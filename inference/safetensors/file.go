// Package safetensors reads the tensor files of Hugging Face model folders.
//
// Like package gguf it reads with pread and not through a memory map, so that a
// file truncated while ragd runs gives an error and no SIGBUS, and checks every
// length and offset against the file's size before it allocates.
//
// A file is the length of the header (u64, little-endian), the header (JSON:
// name → dtype, shape, data_offsets) and the data, which tensors fill without
// holes: https://huggingface.co/docs/safetensors.
package safetensors

import (
	"errors"
	"fmt"
	"io"
	"os"

	"ragd/inference/quant"
)

// File is an open tensor file. Its methods are safe for concurrent use until
// Close.
type File struct {
	Path string
	// Tensors are in the order of their data.
	Tensors []Tensor

	data   io.ReaderAt
	close  func() error
	size   int64
	byName map[string]int
}

// Tensor is one entry of the header.
type Tensor struct {
	Name string
	// DType is the format's name of the element type: F32, F16, BF16, I64, …
	DType string
	// Shape is the lengths in row-major order: the last one is the length of a
	// row. None is zero; a scalar has no dimension.
	Shape []uint64
	// Offset is the place of the data in the file and Size its length, in bytes.
	Offset, Size int64
}

// Type is the tensor's type for package quant; ok is false for integers and
// other types that weights do not have.
func (t *Tensor) Type() (typ quant.Type, ok bool) {
	switch t.DType {
	case "F32":
		return quant.F32, true
	case "F16":
		return quant.F16, true
	case "BF16":
		return quant.BF16, true
	}
	return 0, false
}

// Cols is the length of a row, 1 for a scalar.
func (t *Tensor) Cols() int {
	if len(t.Shape) == 0 {
		return 1
	}
	return int(t.Shape[len(t.Shape)-1])
}

// Rows is the number of rows, over all dimensions but the last.
func (t *Tensor) Rows() int {
	rows := 1
	for i := range len(t.Shape) - 1 {
		rows *= int(t.Shape[i])
	}
	return rows
}

// FormatError says what is wrong with a file and where.
type FormatError struct {
	Path string
	// Place is "header" or a tensor.
	Place string
	// Needs is the size that the file must have at the least and Has what it
	// has, in bytes; both are zero when length is not the fault.
	Needs, Has int64
	// Reason says what is wrong when length is not the fault.
	Reason string
}

// Error names file, place and fault.
func (e *FormatError) Error() string {
	if e.Needs > 0 {
		return fmt.Sprintf("%s: %s: file is cut short: needs %d bytes, has %d", e.Path, e.Place, e.Needs, e.Has)
	}
	return fmt.Sprintf("%s: %s: %s", e.Path, e.Place, e.Reason)
}

// Open reads the header of the file at path and checks that all data lies
// inside it. What is wrong with a malformed file is told by a *FormatError.
func Open(path string) (*File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open model: %w", err)
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open model: %w", err), f.Close())
	}
	if !info.Mode().IsRegular() {
		return nil, errors.Join(&FormatError{Path: path, Place: "file", Reason: "is not a regular file"}, f.Close())
	}
	file, err := parse(path, f, info.Size())
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	file.close = f.Close
	return file, nil
}

// Close closes the file. Slices from Read stay valid.
func (f *File) Close() error { return f.close() }

// Names are the names of the tensors in the order of their data.
func (f *File) Names() []string {
	names := make([]string, len(f.Tensors))
	for i := range f.Tensors {
		names[i] = f.Tensors[i].Name
	}
	return names
}

// Tensor finds a tensor by name.
func (f *File) Tensor(name string) (*Tensor, bool) {
	i, ok := f.byName[name]
	if !ok {
		return nil, false
	}
	return &f.Tensors[i], true
}

// Read returns the t.Size bytes of a tensor in a slice of its own. A file that
// has become shorter since Open gives a *FormatError.
func (f *File) Read(t *Tensor) ([]byte, error) {
	if t.Offset < 0 || t.Size < 0 || t.Offset > f.size-t.Size {
		return nil, f.short(t, f.size)
	}
	data := make([]byte, t.Size)
	n, err := f.data.ReadAt(data, t.Offset)
	if n == len(data) {
		return data, nil
	}
	if errors.Is(err, io.EOF) {
		return nil, f.short(t, t.Offset+int64(n))
	}
	return nil, fmt.Errorf("%s: tensor %q: %w", f.Path, t.Name, err)
}

func (f *File) short(t *Tensor, has int64) error {
	return &FormatError{Path: f.Path, Place: fmt.Sprintf("tensor %q", t.Name), Needs: t.Offset + t.Size, Has: has}
}
