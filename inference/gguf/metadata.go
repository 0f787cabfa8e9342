package gguf

import "slices"

// Keys are the metadata keys in the order of the file.
func (f *File) Keys() []string { return slices.Clone(f.keys) }

// Architecture is the family of the model, general.architecture; empty when
// the file does not say.
func (f *File) Architecture() string {
	name, _ := f.String("general.architecture")
	return name
}

// single finds a value that is no array and no boolean.
func (f *File) single(key string) (value, bool) {
	v, ok := f.values[key]
	return v, ok && !v.list && v.kind != kindBool
}

// list finds an array.
func (f *File) list(key string) (value, bool) {
	v, ok := f.values[key]
	return v, ok && v.list
}

// String is the string under key; ok is false when there is none of that type,
// as in all getters here.
func (f *File) String(key string) (s string, ok bool) {
	v, ok := f.single(key)
	if !ok || v.kind != kindString {
		return "", false
	}
	return v.text[0], true
}

// Uint is the integer under key, of any width; a negative one is not ok.
func (f *File) Uint(key string) (n uint64, ok bool) {
	v, ok := f.single(key)
	if !ok {
		return 0, false
	}
	if v.kind == kindU64 {
		return order.Uint64(v.raw), true
	}
	i, ok := v.integer(0)
	if !ok || i < 0 {
		return 0, false
	}
	return uint64(i), true
}

// Int is the integer under key, of any width.
func (f *File) Int(key string) (n int64, ok bool) {
	v, ok := f.single(key)
	if !ok {
		return 0, false
	}
	n, ok = v.integer(0)
	if !ok {
		return 0, false
	}
	return n, true
}

// Float is the number under key: f32, f64 or an integer.
func (f *File) Float(key string) (x float64, ok bool) {
	v, ok := f.single(key)
	if !ok {
		return 0, false
	}
	if x, ok := v.float(0); ok {
		return x, true
	}
	if u, ok := f.Uint(key); ok {
		return float64(u), true
	}
	n, ok := f.Int(key)
	return float64(n), ok
}

// Bool is the boolean under key.
func (f *File) Bool(key string) (b, ok bool) {
	v, ok := f.values[key]
	if !ok || v.list || v.kind != kindBool {
		return false, false
	}
	return v.raw[0] != 0, true
}

// Strings is the array of strings under key. The caller may change it.
func (f *File) Strings(key string) ([]string, bool) {
	v, ok := f.list(key)
	if !ok || v.kind != kindString {
		return nil, false
	}
	return slices.Clone(v.text), true
}

// Floats is the array of f32 or f64 under key.
func (f *File) Floats(key string) ([]float32, bool) {
	v, ok := f.list(key)
	if !ok || v.kind != kindF32 && v.kind != kindF64 {
		return nil, false
	}
	xs := make([]float32, v.len())
	for i := range xs {
		x, _ := v.float(i)
		xs[i] = float32(x)
	}
	return xs, true
}

// Ints is the array of integers of any width, or of booleans as 0 and 1,
// under key. It is not ok when a value is too large for int64.
func (f *File) Ints(key string) ([]int64, bool) {
	v, ok := f.list(key)
	if !ok || v.kind == kindString || v.kind == kindF32 || v.kind == kindF64 {
		return nil, false
	}
	ns := make([]int64, v.len())
	for i := range ns {
		n, ok := v.integer(i)
		if !ok {
			return nil, false
		}
		ns[i] = n
	}
	return ns, true
}

// Bytes is the array of u8 or i8 under key.
func (f *File) Bytes(key string) ([]byte, bool) {
	v, ok := f.list(key)
	if !ok || v.kind != kindU8 && v.kind != kindI8 {
		return nil, false
	}
	return slices.Clone(v.raw), true
}
