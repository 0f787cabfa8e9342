package chat

import (
	"fmt"
	"strings"
)

// method is the bound method obj.id, nil when the type has none of that name.
// This is the whole list of what a template can call on a value.
func method(obj value, id string) callable {
	switch o := obj.(type) {
	case text:
		if f := textMethod(id); f != nil {
			return func(in *interp, a arguments) (value, error) {
				if err := in.spend(len(o.s)); err != nil {
					return nil, err
				}
				return f(in, o, a)
			}
		}
	case *dict:
		return dictMethod(o, id)
	}
	return nil
}

func dictMethod(d *dict, id string) callable {
	switch id {
	case "items":
		return func(in *interp, _ arguments) (value, error) {
			return &list{items: d.pairs()}, in.step(len(d.keys))
		}
	case "keys":
		return func(*interp, arguments) (value, error) { return &list{items: d.keys}, nil }
	case "values":
		return func(*interp, arguments) (value, error) { return &list{items: d.values}, nil }
	case "get":
		return func(_ *interp, a arguments) (value, error) {
			key, ok := a.get(0, "key")
			if !ok {
				return nil, errMissing
			}
			if v, ok := d.get(key); ok {
				return v, nil
			}
			v, _ := a.get(1, "default")
			return v, nil
		}
	}
	return nil
}

type textFunc func(in *interp, t text, a arguments) (value, error)

func textMethod(id string) textFunc {
	switch id {
	case "strip":
		return trimmer(true, true)
	case "lstrip":
		return trimmer(true, false)
	case "rstrip":
		return trimmer(false, true)
	case "split":
		return splitMethod
	case "splitlines":
		return func(_ *interp, t text, _ arguments) (value, error) { return textList(lines(t)), nil }
	case "startswith":
		return affix(strings.HasPrefix)
	case "endswith":
		return affix(strings.HasSuffix)
	case "upper", "lower", "capitalize", "title":
		return func(_ *interp, t text, _ arguments) (value, error) { return changeCase(id, t), nil }
	case "replace":
		return replaceText
	case "find":
		return findMethod
	case "format":
		return formatMethod
	case "join":
		return func(in *interp, t text, a arguments) (value, error) {
			v, ok := a.get(0, "iterable")
			if !ok {
				return nil, errMissing
			}
			return in.join(v, t)
		}
	}
	return nil
}

func textList(parts []text) *list {
	l := &list{items: make([]value, len(parts))}
	for i, p := range parts {
		l.items[i] = p
	}
	return l
}

// trimmer is strip, lstrip or rstrip; the argument lists the characters to cut.
func trimmer(left, right bool) textFunc {
	return func(_ *interp, t text, a arguments) (value, error) {
		if v, ok := a.get(0, "chars"); !ok || v == nil {
			return t.trim(isSpace, left, right), nil
		}
		chars, err := a.text(0, "chars")
		cut := func(r rune) bool { return strings.ContainsRune(chars.s, r) }
		return t.trim(cut, left, right), err
	}
}

func splitMethod(in *interp, t text, a arguments) (value, error) {
	limit, err := a.integer(1, "maxsplit", -1)
	if err != nil {
		return nil, err
	}
	var parts []text
	if v, ok := a.get(0, "sep"); !ok || v == nil {
		parts = words(t, limit)
	} else {
		sep, err := a.text(0, "sep")
		if err != nil {
			return nil, err
		}
		if sep.s == "" {
			return nil, fmt.Errorf("empty separator")
		}
		parts = t.splitBy(sep.s, limit)
	}
	// Cutting looks through the spans once for each part.
	return textList(parts), in.step(len(parts) * (1 + len(t.spans)))
}

// words splits at runs of white space, at most limit times if limit >= 0.
func words(t text, limit int) []text {
	var out []text
	for t = t.trim(isSpace, true, false); t.s != ""; t = t.trim(isSpace, true, false) {
		end := strings.IndexFunc(t.s, isSpace)
		if limit == 0 || end < 0 {
			return append(out, t)
		}
		out = append(out, t.slice(0, end))
		t = t.slice(end, len(t.s))
		limit--
	}
	return out
}

// lines splits at line ends and drops them.
func lines(t text) []text {
	var out []text
	for t.s != "" {
		end := strings.IndexAny(t.s, "\n\r")
		if end < 0 {
			return append(out, t)
		}
		out = append(out, t.slice(0, end))
		if strings.HasPrefix(t.s[end:], "\r\n") {
			end++
		}
		t = t.slice(end+1, len(t.s))
	}
	return out
}

// affix tests for a prefix or suffix, or for any of a tuple of them.
func affix(has func(s, affix string) bool) textFunc {
	return func(_ *interp, t text, a arguments) (value, error) {
		v, _ := a.get(0, "affix")
		l, ok := v.(*list)
		if !ok {
			x, err := a.text(0, "affix")
			return err == nil && has(t.s, x.s), err
		}
		for _, item := range l.items {
			x, ok := item.(text)
			if !ok {
				return nil, fmt.Errorf("affix must be a string, not %s", typeName(item))
			}
			if has(t.s, x.s) {
				return true, nil
			}
		}
		return false, nil
	}
}

func replaceText(in *interp, t text, a arguments) (value, error) {
	old, err := a.text(0, "old")
	if err != nil {
		return nil, err
	}
	with, err := a.text(1, "new")
	if err != nil {
		return nil, err
	}
	limit, err := a.integer(2, "count", -1)
	if err != nil {
		return nil, err
	}
	n := strings.Count(t.s, old.s)
	if limit >= 0 {
		n = min(n, limit)
	}
	if err := in.spend(len(t.s) + n*len(with.s)); err != nil {
		return nil, err
	}
	if err := in.step(n * (1 + len(t.spans) + len(with.spans))); err != nil {
		return nil, err
	}
	return t.replace(old.s, with, limit), nil
}

func findMethod(_ *interp, t text, a arguments) (value, error) {
	sub, err := a.text(0, "sub")
	if err != nil {
		return nil, err
	}
	i := strings.Index(t.s, sub.s)
	if i < 0 {
		return int64(-1), nil
	}
	return int64(t.slice(0, i).length()), nil
}

// formatMethod fills each {} with the next argument; other fields are not
// supported, since they can reach into values.
func formatMethod(in *interp, t text, a arguments) (value, error) {
	parts := t.splitBy("{}", -1)
	for _, p := range parts {
		if strings.ContainsAny(p.s, "{}") {
			return nil, fmt.Errorf("fields other than {}: %w", ErrUnsupported)
		}
	}
	if len(parts)-1 > len(a.pos) {
		return nil, fmt.Errorf("%d fields for %d arguments", len(parts)-1, len(a.pos))
	}
	var b builder
	for i, p := range parts {
		b.add(p)
		if i == len(parts)-1 {
			break
		}
		arg, err := in.str(a.pos[i])
		if err != nil {
			return nil, err
		}
		b.add(arg)
		if err := in.checkSize(b.len()); err != nil {
			return nil, err
		}
	}
	return b.text(), in.spend(b.len())
}
