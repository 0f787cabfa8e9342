package model

import (
	"context"
	"fmt"
	"slices"

	"ragd/inference/quant"
)

// tensorInfo describes a stored tensor; a vector has one row.
type tensorInfo struct {
	typ        quant.Type
	rows, cols int
}

// source is a container of weights under GGUF's names.
type source interface {
	// names lists every tensor of the container.
	names() []string
	// info finds a tensor.
	info(name string) (tensorInfo, bool)
	// read returns the stored bytes.
	read(name string) ([]byte, error)
}

// loader moves tensors from a source into a backend, holding each to the shape
// the configuration asks for. The first error sticks and is told by finish, so
// that the assembly of a model reads as a list of its parts.
type loader struct {
	ctx   context.Context
	src   source
	ops   Ops
	used  map[string]bool
	bytes int64
	err   error
}

func newLoader(ctx context.Context, src source, ops Ops) *loader {
	return &loader{ctx: ctx, src: src, ops: ops, used: make(map[string]bool)}
}

// has reports whether the container holds a tensor.
func (l *loader) has(name string) bool {
	_, ok := l.src.info(name)
	return ok
}

// fetch reads a tensor of exactly rows × cols values.
func (l *loader) fetch(name string, rows, cols int) (tensorInfo, []byte, bool) {
	if l.err != nil {
		return tensorInfo{}, nil, false
	}
	if l.err = l.ctx.Err(); l.err != nil {
		return tensorInfo{}, nil, false
	}
	info, ok := l.src.info(name)
	if !ok {
		l.err = fmt.Errorf("%w %s is missing", ErrTensor, name)
		return tensorInfo{}, nil, false
	}
	l.used[name] = true
	if info.rows != rows || info.cols != cols {
		l.err = fmt.Errorf("%w %s has shape %d×%d, the configuration asks for %d×%d", ErrTensor, name, info.rows, info.cols, rows, cols)
		return tensorInfo{}, nil, false
	}
	data, err := l.src.read(name)
	if err != nil {
		l.err = fmt.Errorf("%w %s: %w", ErrTensor, name, err)
		return tensorInfo{}, nil, false
	}
	return info, data, true
}

// matrix loads name (rows × cols).
func (l *loader) matrix(name string, rows, cols int, use Use) Matrix {
	info, data, ok := l.fetch(name, rows, cols)
	if !ok {
		return nil
	}
	m, err := l.ops.LoadMatrix(info.typ, rows, cols, data, use)
	if err != nil {
		l.err = fmt.Errorf("%w %s: %w", ErrTensor, name, err)
		return nil
	}
	l.bytes += m.Bytes()
	return m
}

// floats reads a vector of n values as float32.
func (l *loader) floats(name string, n int) []float32 {
	info, data, ok := l.fetch(name, 1, n)
	if !ok {
		return nil
	}
	v := make([]float32, n)
	if err := quant.Decode(info.typ, v, data); err != nil {
		l.err = fmt.Errorf("%w %s: %w", ErrTensor, name, err)
		return nil
	}
	return v
}

// vector loads a vector of n values.
func (l *loader) vector(name string, n int) Vector {
	v := l.floats(name, n)
	if v == nil {
		return nil
	}
	loaded, err := l.ops.LoadVector(v)
	if err != nil {
		l.err = fmt.Errorf("%w %s: %w", ErrTensor, name, err)
		return nil
	}
	l.bytes += int64(n) * 4
	return loaded
}

// linear loads name.weight (rows × cols) and name.bias where there is one.
func (l *loader) linear(name string, rows, cols int) Linear {
	w := Linear{W: l.matrix(name+".weight", rows, cols, UseProduct)}
	if l.has(name + ".bias") {
		w.B = l.vector(name+".bias", rows)
	}
	return w
}

// rmsNorm loads the gain of an RMSNorm over n values.
func (l *loader) rmsNorm(name string, n int, eps float32) Norm {
	return Norm{Gain: l.vector(name+".weight", n), Eps: eps}
}

// optionalNorm is rmsNorm where the container has it and no norm elsewhere.
func (l *loader) optionalNorm(name string, n int, eps float32) Norm {
	if !l.has(name + ".weight") {
		return Norm{}
	}
	return l.rmsNorm(name, n, eps)
}

// layerNorm loads gain and shift of a LayerNorm over n values.
func (l *loader) layerNorm(name string, n int, eps float32) Norm {
	return Norm{Gain: l.vector(name+".weight", n), Shift: l.vector(name+".bias", n), Eps: eps}
}

// tensor makes activations.
func (l *loader) tensor(width int) Tensor {
	if l.err != nil {
		return nil
	}
	t, err := l.ops.NewTensor(width)
	l.err = err
	return t
}

// finish tells the first error. A tensor that no part of the model took is one
// too: the model computes something this family does not.
func (l *loader) finish() error {
	if l.err != nil {
		return l.err
	}
	names := l.src.names()
	slices.Sort(names)
	for _, name := range names {
		if !l.used[name] {
			return fmt.Errorf("%w %s belongs to no part of this architecture", ErrTensor, name)
		}
	}
	return nil
}
