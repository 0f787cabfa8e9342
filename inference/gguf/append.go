package gguf

import (
	"encoding/binary"
	"fmt"
)

func appendText(b []byte, s string) []byte {
	return append(order.AppendUint64(b, uint64(len(s))), s...)
}

// appendValue appends the type and the value of a metadata entry.
func appendValue(b []byte, value any) ([]byte, error) {
	switch v := value.(type) {
	case string:
		return appendText(appendKind(b, kindString), v), nil
	case []string:
		b = appendArray(b, kindString, len(v))
		for _, s := range v {
			b = appendText(b, s)
		}
		return b, nil
	}
	k, count := kindOf(value)
	switch {
	case k == kindArray:
		return nil, fmt.Errorf("values of type %T are not supported", value)
	case count < 0:
		b = appendKind(b, k)
	default:
		b = appendArray(b, k, count)
	}
	return binary.Append(b, order, value)
}

func appendKind(b []byte, k kind) []byte { return order.AppendUint32(b, uint32(k)) }

func appendArray(b []byte, k kind, count int) []byte {
	return order.AppendUint64(appendKind(appendKind(b, kindArray), k), uint64(count))
}

// kindOf is the kind of a number, boolean or slice of them, and the length of
// the slice (-1 for a single value); kindArray for anything else.
func kindOf(value any) (k kind, count int) {
	switch v := value.(type) {
	case uint8:
		return kindU8, -1
	case []uint8:
		return kindU8, len(v)
	case int8:
		return kindI8, -1
	case []int8:
		return kindI8, len(v)
	case uint16:
		return kindU16, -1
	case []uint16:
		return kindU16, len(v)
	case int16:
		return kindI16, -1
	case []int16:
		return kindI16, len(v)
	case uint32:
		return kindU32, -1
	case []uint32:
		return kindU32, len(v)
	case int32:
		return kindI32, -1
	case []int32:
		return kindI32, len(v)
	case uint64:
		return kindU64, -1
	case []uint64:
		return kindU64, len(v)
	case int64:
		return kindI64, -1
	case []int64:
		return kindI64, len(v)
	case float32:
		return kindF32, -1
	case []float32:
		return kindF32, len(v)
	case float64:
		return kindF64, -1
	case []float64:
		return kindF64, len(v)
	case bool:
		return kindBool, -1
	case []bool:
		return kindBool, len(v)
	}
	return kindArray, -1
}
