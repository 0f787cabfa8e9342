package chat

import (
	"fmt"
	"strconv"
	"strings"
)

// filter is `v | id(a)`.
func (in *interp) filter(id string, v value, a arguments) (value, error) {
	if f := textFilter(id); f != nil {
		t, err := in.str(v)
		if err != nil {
			return nil, err
		}
		if err := in.spend(len(t.s)); err != nil {
			return nil, err
		}
		return f(in, t, a)
	}
	switch id {
	case "length", "count":
		return length(v)
	case "default", "d":
		return fallback(v, a)
	case "tojson":
		return in.tojson(v, a)
	case "string", "safe": // nothing is escaped, so nothing is made safe
		return in.str(v)
	case "int":
		return toInt(v, a)
	case "abs":
		return absolute(v)
	case "items":
		return in.pairs(v)
	case "join":
		sep, err := optionalText(a, 0, "d")
		if err != nil {
			return nil, err
		}
		return in.join(v, sep)
	}
	return in.listFilter(id, v, a)
}

// textFilter holds the filters that make a string of their operand first.
func textFilter(id string) textFunc {
	switch id {
	case "trim":
		return trimmer(true, true)
	case "upper", "lower", "capitalize":
		return textMethod(id)
	case "replace":
		return replaceText
	case "indent":
		return indentText
	}
	return nil
}

func optionalText(a arguments, i int, id string) (text, error) {
	if _, ok := a.get(i, id); !ok {
		return text{}, nil
	}
	return a.text(i, id)
}

func length(v value) (value, error) {
	switch v := v.(type) {
	case text:
		return int64(v.length()), nil
	case *list:
		return int64(len(v.items)), nil
	case *dict:
		return int64(len(v.keys)), nil
	case undefined:
		return int64(0), nil
	}
	return nil, fmt.Errorf("%s has no length", typeName(v))
}

// fallback is the default filter; with a second true argument everything
// empty is replaced, not only what is undefined.
func fallback(v value, a arguments) (value, error) {
	other, ok := a.get(0, "default_value")
	if !ok {
		other = text{}
	}
	empty, _ := a.get(1, "boolean")
	_, missing := v.(undefined)
	if missing || truth(empty) && !truth(v) {
		return other, nil
	}
	return v, nil
}

func toInt(v value, a arguments) (value, error) {
	n, err := a.integer(0, "default", 0)
	if err != nil {
		return nil, err
	}
	if t, ok := v.(text); ok {
		s := strings.TrimFunc(t.s, isSpace)
		if i, err := strconv.ParseInt(s, 10, 64); err == nil {
			return i, nil
		}
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return int64(n), nil
		}
		v = f
	}
	i, f, isInt, ok := number(v)
	switch {
	case ok && isInt:
		return i, nil
	case ok && f > -1<<63 && f < 1<<63:
		return int64(f), nil
	}
	return int64(n), nil
}

func absolute(v value) (value, error) {
	i, f, isInt, ok := number(v)
	switch {
	case !ok:
		return nil, fmt.Errorf("%s is no number", typeName(v))
	case isInt:
		return max(i, -i), nil
	}
	return max(f, -f), nil
}

func (in *interp) pairs(v value) (value, error) {
	switch v := v.(type) {
	case *dict:
		return &list{items: v.pairs()}, in.step(len(v.keys))
	case undefined:
		return &list{}, nil
	}
	return nil, fmt.Errorf("%s is no mapping", typeName(v))
}

func (in *interp) join(v value, sep text) (value, error) {
	items, err := in.items(v)
	if err != nil {
		return nil, err
	}
	var b builder
	for i, item := range items {
		t, err := in.str(item)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			b.add(sep)
		}
		b.add(t)
		if err := in.checkSize(b.len()); err != nil {
			return nil, err
		}
	}
	return b.text(), in.spend(b.len())
}

// indentText puts spaces before every line but the first (and the empty ones,
// unless asked otherwise).
func indentText(in *interp, t text, a arguments) (value, error) {
	width, err := indentOf(a, 0, "width", 4)
	if err != nil {
		return nil, err
	}
	first, _ := a.get(1, "first")
	blank, _ := a.get(2, "blank")
	var b builder
	for i, line := range t.splitBy("\n", -1) {
		if i > 0 {
			b.addString("\n", t.originOf())
		}
		if (i > 0 || truth(first)) && (line.s != "" || truth(blank)) {
			b.addString(width, t.originOf())
		}
		b.add(line)
		if err := in.step(1 + len(t.spans)); err != nil {
			return nil, err
		}
		if err := in.checkSize(b.len()); err != nil {
			return nil, err
		}
	}
	return b.text(), in.spend(b.len())
}

// indentOf reads an indentation: a number of spaces or a string.
func indentOf(a arguments, i int, id string, n int) (string, error) {
	v, _ := a.get(i, id)
	if t, ok := v.(text); ok {
		return t.s, nil
	}
	n, err := a.integer(i, id, n)
	if err != nil {
		return "", err
	}
	if n > 1000 {
		return "", fmt.Errorf("indentation by %d: %w", n, ErrLimit)
	}
	return strings.Repeat(" ", max(n, 0)), nil
}
