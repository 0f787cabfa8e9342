package model

import (
	"fmt"
	"math"

	"ragd/inference/gguf"
)

// metadata reads the configuration keys of one architecture. The first error
// sticks, so that a list of keys reads as one.
type metadata struct {
	f      *gguf.File
	prefix string
	err    error
}

// str is a string, or def where the key is missing.
func (m *metadata) str(key, def string) string {
	if s, ok := m.f.String(m.prefix + key); ok {
		return s
	}
	return def
}

func (m *metadata) fail(key, format string, args ...any) {
	if m.err == nil {
		m.err = fmt.Errorf("%w: %s%s %s", ErrConfig, m.prefix, key, fmt.Sprintf(format, args...))
	}
}

// count is an integer from 1 to most that must be there.
func (m *metadata) count(key string, most int) int {
	n, ok := m.f.Uint(m.prefix + key)
	switch {
	case !ok:
		m.fail(key, "is missing")
	case n < 1 || n > uint64(most):
		m.fail(key, "is %d (1 to %d)", n, most)
	default:
		return int(n)
	}
	return 0
}

// countOr is count, or def where the key is missing or zero.
func (m *metadata) countOr(key string, def, most int) int {
	if n, ok := m.f.Uint(m.prefix + key); !ok || n == 0 {
		return def
	}
	return m.count(key, most)
}

// number is a finite number that must be there.
func (m *metadata) number(key string) float64 {
	x, ok := m.f.Float(m.prefix + key)
	if !ok {
		m.fail(key, "is missing")
	} else if math.IsNaN(x) || math.IsInf(x, 0) {
		m.fail(key, "is %g", x)
	}
	return x
}

// numberOr is number, or def where the key is missing.
func (m *metadata) numberOr(key string, def float64) float64 {
	if _, ok := m.f.Float(m.prefix + key); !ok {
		return def
	}
	return m.number(key)
}

// linearScale is the factor by which positions are divided (linear position
// interpolation). Scalings that change frequencies by other rules are refused.
func (m *metadata) linearScale() float64 {
	switch kind := m.str("rope.scaling.type", "none"); kind {
	case "none":
		return 1
	case "linear":
		return m.numberOr("rope.scaling.factor", 1)
	default:
		m.fail("rope.scaling.type", "%q is not supported (none, linear)", kind)
		return 1
	}
}

// ggufSource serves the tensors of a GGUF file.
type ggufSource struct{ f *gguf.File }

func (s ggufSource) names() []string {
	names := make([]string, len(s.f.Tensors))
	for i := range s.f.Tensors {
		names[i] = s.f.Tensors[i].Name
	}
	return names
}

func (s ggufSource) info(name string) (tensorInfo, bool) {
	t, ok := s.f.Tensor(name)
	if !ok {
		return tensorInfo{}, false
	}
	return tensorInfo{typ: t.Type, rows: t.Rows(), cols: t.Cols()}, true
}

func (s ggufSource) read(name string) ([]byte, error) {
	t, _ := s.f.Tensor(name)
	return s.f.Read(t)
}
