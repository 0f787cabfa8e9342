package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// fromGo brings a Go value in, by way of its JSON form; its strings are
// content of the given origin.
func fromGo(x any, org origin) (value, error) {
	raw, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	return decode(dec, org, 0)
}

// decode reads one JSON value and keeps the order of keys.
func decode(dec *json.Decoder, org origin, depth int) (value, error) {
	if depth > maxData {
		return nil, fmt.Errorf("data nested too deep: %w", ErrLimit)
	}
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := tok.(type) {
	case string:
		return tagged(t, org), nil
	case json.Number:
		if i, err := t.Int64(); err == nil {
			return i, nil
		}
		return t.Float64()
	case json.Delim:
		if t == '[' {
			return decodeList(dec, org, depth)
		}
		return decodeDict(dec, org, depth)
	}
	return tok, nil // bool or nil
}

func decodeList(dec *json.Decoder, org origin, depth int) (value, error) {
	l := &list{}
	for dec.More() {
		v, err := decode(dec, org, depth+1)
		if err != nil {
			return nil, err
		}
		l.items = append(l.items, v)
	}
	_, err := dec.Token()
	return l, err
}

func decodeDict(dec *json.Decoder, org origin, depth int) (value, error) {
	d := &dict{}
	for dec.More() {
		k, err := decode(dec, org, depth+1)
		if err != nil {
			return nil, err
		}
		v, err := decode(dec, org, depth+1)
		if err != nil {
			return nil, err
		}
		d.set(k, v)
	}
	_, err := dec.Token()
	return d, err
}
