package gguf

import (
	"bytes"
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ragd/inference/quant"
)

// witness is the file that llama.cpp's own writer made.
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

func save(tb testing.TB, raw []byte) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), "model.gguf")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

func open(tb testing.TB, raw []byte) *File {
	tb.Helper()
	f, err := Open(save(tb, raw))
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

// refuse opens a malformed file and returns the error that tells why.
func refuse(t *testing.T, raw []byte) *FormatError {
	t.Helper()
	path := save(t, raw)
	f, err := Open(path)
	if err == nil {
		_ = f.Close()
		t.Fatal("the file is accepted")
	}
	var format *FormatError
	if !errors.As(err, &format) {
		t.Fatalf("error %v is no FormatError", err)
	}
	if !strings.Contains(err.Error(), path) {
		t.Errorf("error %q does not name the file", err)
	}
	return format
}

// sample is a small well-formed file with two tensors.
func sample(tb testing.TB) []byte {
	tb.Helper()
	var out bytes.Buffer
	w := NewWriter(&out)
	err := errors.Join(
		w.Set("general.architecture", "llama"),
		w.Set("tokenizer.ggml.tokens", []string{"<s>", "</s>", "a"}),
		w.Add("first", []uint64{32, 2}, quant.Q8_0, make([]byte, 68)),
		w.Add("second", []uint64{8}, quant.F32, make([]byte, 32)),
		w.Finish(),
	)
	if err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

// raw assembles a file by hand, so that any part of it can be wrong.
type raw struct{ b []byte }

func newRaw(version uint32, tensors, entries uint64) *raw {
	r := &raw{b: []byte(magic)}
	return r.u32(version).u64(tensors).u64(entries)
}

func (r *raw) u32(v uint32) *raw { r.b = order.AppendUint32(r.b, v); return r }

func (r *raw) u64(v uint64) *raw { r.b = order.AppendUint64(r.b, v); return r }

func (r *raw) text(s string) *raw { r.b = appendText(r.b, s); return r }

func (r *raw) tensor(name string, typ uint32, offset uint64, dims ...uint64) *raw {
	r.text(name).u32(uint32(len(dims)))
	for _, d := range dims {
		r.u64(d)
	}
	return r.u32(typ).u64(offset)
}

// data pads the head to the alignment and adds n bytes.
func (r *raw) data(n int) []byte {
	r.b = append(r.b, make([]byte, padding(uint64(len(r.b))))...)
	return append(r.b, make([]byte, n)...)
}
