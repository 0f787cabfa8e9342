package chat

import (
	"math"
	"strconv"
	"strings"
)

// value is one of: nil (none), undefined, bool, int64, float64, text, *list,
// *dict, *namespace, loopState and callable.
type value any

// undefined is what a missing name or key gives; most uses of it are errors.
type undefined struct{ what string }

type list struct {
	items []value
	tuple bool
}

// dict is a mapping that keeps the order of insertion.
type dict struct {
	keys   []value
	values []value
	at     map[any]int
}

// namespace is the object whose attributes a template may assign.
type namespace struct{ vars dict }

// callable is a function, method or macro.
type callable func(in *interp, a arguments) (value, error)

// hashKey is the form of a key that Go can compare; ok is false for values
// that Python would not hash either.
func hashKey(k value) (any, bool) {
	switch k := k.(type) {
	case text:
		return k.s, true
	case bool:
		return asInt(k), true
	case float64:
		if i := int64(k); float64(i) == k {
			return i, true
		}
		return k, true
	case int64, nil:
		return k, true
	}
	return nil, false
}

func (d *dict) get(k value) (value, bool) {
	h, ok := hashKey(k)
	if !ok {
		return nil, false
	}
	i, ok := d.at[h]
	if !ok {
		return nil, false
	}
	return d.values[i], true
}

// set adds or replaces; it reports false for a key that cannot be one.
func (d *dict) set(k, v value) bool {
	h, ok := hashKey(k)
	if !ok {
		return false
	}
	if i, ok := d.at[h]; ok {
		d.values[i] = v
		return true
	}
	if d.at == nil {
		d.at = map[any]int{}
	}
	d.at[h] = len(d.keys)
	d.keys, d.values = append(d.keys, k), append(d.values, v)
	return true
}

func (d *dict) put(key string, v value) { d.set(scaffold(key), v) }

// pairs is the list of (key, value).
func (d *dict) pairs() []value {
	out := make([]value, len(d.keys))
	for i := range d.keys {
		out[i] = &list{items: []value{d.keys[i], d.values[i]}, tuple: true}
	}
	return out
}

func truth(v value) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case text:
		return v.s != ""
	case *list:
		return len(v.items) > 0
	case *dict:
		return len(v.keys) > 0
	}
	return true
}

func asInt(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// number splits a numeric value: isInt says which of the two holds.
func number(v value) (i int64, f float64, isInt, ok bool) {
	switch v := v.(type) {
	case bool:
		return asInt(v), float64(asInt(v)), true, true
	case int64:
		return v, float64(v), true, true
	case float64:
		return 0, v, false, true
	}
	return 0, 0, false, false
}

// typeName is Python's name of a value's type, for messages.
func typeName(v value) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case undefined:
		return v.what + " (undefined)"
	case bool:
		return "bool"
	case int64:
		return "int"
	case float64:
		return "float"
	case text:
		return "string"
	case *list:
		if v.tuple {
			return "tuple"
		}
		return "list"
	case *dict:
		return "mapping"
	case *namespace:
		return "namespace"
	case loopState:
		return "loop"
	}
	return "function"
}

// floatRepr spells a float as Python does.
func floatRepr(f float64) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	exp := 0
	if f != 0 {
		e := strconv.FormatFloat(f, 'e', -1, 64)
		exp, _ = strconv.Atoi(e[strings.IndexByte(e, 'e')+1:])
	}
	if exp < -4 || exp >= 16 {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}
