package gguf

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"ragd/inference/quant"
)

// Writer collects metadata and tensors of a new GGUF file (version 3,
// alignment 32) and writes it with Finish.
type Writer struct {
	out     io.Writer
	entries []entry
	tensors []pending
	keys    map[string]bool
	names   map[string]bool
	next    uint64 // offset of the next tensor's data
}

type entry struct {
	key   string
	value any
}

type pending struct {
	Tensor
	data []byte
}

// NewWriter starts a file that Finish will write to out.
func NewWriter(out io.Writer) *Writer {
	return &Writer{out: out, keys: map[string]bool{}, names: map[string]bool{}}
}

// Create writes a file at path with the content that build gives to the
// writer. The file appears under its name only when it is complete; after an
// error nothing is left.
func Create(path string, build func(*Writer) error) (err error) {
	tmp, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*")
	if err != nil {
		return fmt.Errorf("write model: %w", err)
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("write model %s: %w", path, errors.Join(err, tmp.Close(), os.Remove(tmp.Name())))
		}
	}()
	buffered := bufio.NewWriterSize(tmp, 1<<20)
	w := NewWriter(buffered)
	if err := build(w); err != nil {
		return err
	}
	if err := errors.Join(w.Finish(), buffered.Flush(), tmp.Chmod(0o644), tmp.Sync()); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), path); err != nil {
		return err
	}
	return tmp.Close()
}

// Set adds a metadata entry. The value is one of string, bool, uint8, int8,
// uint16, int16, uint32, int32, uint64, int64, float32, float64 or a slice of
// one of them. An empty, repeated or far too long key, another type and
// general.alignment are refused.
func (w *Writer) Set(key string, value any) error {
	switch {
	case key == "":
		return errors.New("gguf: empty key")
	case len(key) > longestName:
		return fmt.Errorf("gguf: key of %d bytes, the most is %d", len(key), longestName)
	case key == alignmentKey:
		return fmt.Errorf("gguf: %s is always %d", alignmentKey, defaultAlignment)
	case w.keys[key]:
		return fmt.Errorf("gguf: key %q set twice", key)
	}
	if _, err := appendValue(nil, value); err != nil {
		return fmt.Errorf("gguf: key %q: %w", key, err)
	}
	w.keys[key] = true
	w.entries = append(w.entries, entry{key, value})
	return nil
}

// Add adds a tensor. dims are in ggml's order (dims[0] is the row length), data
// is kept until Finish and must have exactly the size that dims and type ask for.
func (w *Writer) Add(name string, dims []uint64, typ quant.Type, data []byte) error {
	switch {
	case name == "":
		return errors.New("gguf: empty tensor name")
	case len(name) > longestName:
		return fmt.Errorf("gguf: tensor name of %d bytes, the most is %d", len(name), longestName)
	case w.names[name]:
		return fmt.Errorf("gguf: tensor %q added twice", name)
	case len(dims) == 0 || len(dims) > maxDims:
		return fmt.Errorf("gguf: tensor %q has %d dimensions", name, len(dims))
	}
	size, err := dataSize(dims, typ)
	if err != nil {
		return fmt.Errorf("gguf: tensor %q: %w", name, err)
	}
	if size != int64(len(data)) {
		return fmt.Errorf("gguf: tensor %q: %v of %s take %d bytes, not %d", name, dims, typ, size, len(data))
	}
	t := Tensor{Name: name, Dims: dims, Type: typ, Offset: int64(w.next), Size: size}
	w.names[name] = true
	w.tensors = append(w.tensors, pending{t, data})
	w.next += uint64(size) + padding(uint64(size))
	return nil
}

// Finish writes the file. It does not close what it writes to.
func (w *Writer) Finish() error {
	head, err := w.head()
	if err != nil {
		return err
	}
	if err := w.writePadded(head); err != nil {
		return err
	}
	for i := range w.tensors {
		if err := w.writePadded(w.tensors[i].data); err != nil {
			return err
		}
	}
	return nil
}

func (w *Writer) head() ([]byte, error) {
	const version = 3
	b := append([]byte(magic), version, 0, 0, 0)
	b = order.AppendUint64(b, uint64(len(w.tensors)))
	b = order.AppendUint64(b, uint64(len(w.entries)))
	for _, e := range w.entries {
		var err error
		if b, err = appendValue(appendText(b, e.key), e.value); err != nil {
			return nil, fmt.Errorf("gguf: key %q: %w", e.key, err)
		}
	}
	for i := range w.tensors {
		t := &w.tensors[i]
		b = appendText(b, t.Name)
		b = order.AppendUint32(b, uint32(len(t.Dims)))
		for _, d := range t.Dims {
			b = order.AppendUint64(b, d)
		}
		b = order.AppendUint32(b, uint32(t.Type))
		b = order.AppendUint64(b, uint64(t.Offset))
	}
	return b, nil
}

func (w *Writer) writePadded(b []byte) error {
	if _, err := w.out.Write(b); err != nil {
		return fmt.Errorf("gguf: %w", err)
	}
	var zeros [defaultAlignment]byte
	if _, err := w.out.Write(zeros[:padding(uint64(len(b)))]); err != nil {
		return fmt.Errorf("gguf: %w", err)
	}
	return nil
}

// padding is the number of bytes from n to the next multiple of the alignment.
func padding(n uint64) uint64 { return -n % defaultAlignment }
