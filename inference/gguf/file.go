// Package gguf reads and writes GGUF model files, versions 2 and 3: typed
// metadata, a table of tensors, and their data.
//
// Tensors are read with pread and not through a memory map. A file that is
// truncated while ragd runs then gives an error where a map would raise SIGBUS,
// and nothing is lost by it, since weights are copied into a backend's own
// memory anyway.
//
// Every length, count, dimension and offset in the file is checked against its
// size before anything is allocated for it, so what a file makes the reader
// allocate is bounded by a small multiple of the file's size.
//
// The format is described in ggml's docs/gguf.md.
package gguf

import (
	"errors"
	"fmt"
	"io"
	"os"

	"ragd/inference/quant"
)

// File is an open model file. Its methods are safe for concurrent use until
// Close.
type File struct {
	Path    string
	Version uint32
	// Tensors are in the order of the file's tensor table.
	Tensors []Tensor

	data   io.ReaderAt
	close  func() error
	size   int64
	keys   []string
	values map[string]value
	byName map[string]int
}

// Tensor is an entry of the tensor table.
type Tensor struct {
	Name string
	// Dims are one to four lengths in ggml's order: Dims[0] is the length of a
	// row, whose values lie next to each other. None is zero.
	Dims []uint64
	Type quant.Type
	// Offset is the place of the data in the file and Size its length, in bytes.
	Offset, Size int64
}

// Cols is the length of a row.
func (t *Tensor) Cols() int { return int(t.Dims[0]) }

// Rows is the number of rows, over all dimensions but the first.
func (t *Tensor) Rows() int {
	rows := 1
	for _, d := range t.Dims[1:] {
		rows *= int(d)
	}
	return rows
}

// Open reads metadata and tensor table of the file at path and checks that all
// tensor data lies inside it. What is wrong with a malformed file is told by a
// *FormatError.
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
