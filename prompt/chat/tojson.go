package chat

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf16"
)

// jsonWriter spells values as Python's json.dumps does with ensure_ascii off,
// which is the tojson that transformers gives to templates: no escapes for
// HTML. Punctuation takes the origin of the content it surrounds, so that a
// tool schema stays one piece.
type jsonWriter struct {
	in         *interp
	b          builder
	org        origin
	indent     string
	pretty     bool
	comma      string
	colon      string
	sortedKeys bool
	ascii      bool
}

func (in *interp) tojson(v value, a arguments) (value, error) {
	w := &jsonWriter{in: in, org: contentOrigin(v, 0), comma: ", ", colon: ": "}
	if err := w.configure(a); err != nil {
		return nil, err
	}
	if err := w.value(v, 0); err != nil {
		return nil, err
	}
	return w.b.text(), in.spend(w.b.len())
}

// configure reads the arguments ensure_ascii, indent, separators and sort_keys.
func (w *jsonWriter) configure(a arguments) error {
	ascii, _ := a.get(0, "ensure_ascii")
	sortKeys, _ := a.get(3, "sort_keys")
	w.ascii, w.sortedKeys = truth(ascii), truth(sortKeys)
	if x, ok := a.get(1, "indent"); ok && x != nil {
		var err error
		if w.indent, err = indentOf(a, 1, "indent", 0); err != nil {
			return err
		}
		w.pretty, w.comma = true, ","
	}
	x, ok := a.get(2, "separators")
	if !ok || x == nil {
		return nil
	}
	l, isList := x.(*list)
	if !isList || len(l.items) != 2 {
		return fmt.Errorf("separators must be two strings")
	}
	sep := arguments{pos: l.items}
	comma, err := sep.text(0, "item separator")
	if err != nil {
		return err
	}
	colon, err := sep.text(1, "key separator")
	w.comma, w.colon = comma.s, colon.s
	return err
}

// contentOrigin is the origin of the first content inside v, else scaffold.
func contentOrigin(v value, depth int) origin {
	var inside [][]value
	switch v := v.(type) {
	case text:
		return v.originOf()
	case *list:
		inside = [][]value{v.items}
	case *dict:
		inside = [][]value{v.keys, v.values}
	}
	for _, items := range inside {
		for _, x := range items {
			if depth > maxData {
				break
			}
			if org := contentOrigin(x, depth+1); org.content {
				return org
			}
		}
	}
	return origin{}
}

func (w *jsonWriter) raw(s string) { w.b.addString(s, w.org) }

func (w *jsonWriter) line(depth int) {
	if w.pretty {
		w.raw("\n" + strings.Repeat(w.indent, depth))
	}
}

func (w *jsonWriter) value(v value, depth int) error {
	if depth > maxData {
		return fmt.Errorf("data nested too deep: %w", ErrLimit)
	}
	if err := w.in.step(1); err != nil {
		return err
	}
	switch v := v.(type) {
	case text:
		w.str(v)
	case *list:
		return w.list(v, depth)
	case *dict:
		return w.dict(v, depth)
	case nil, bool, int64, float64:
		w.raw(jsonScalar(v))
	default:
		return fmt.Errorf("%s has no JSON form", typeName(v))
	}
	return w.in.checkSize(w.b.len())
}

func jsonScalar(v value) string {
	if f, ok := v.(float64); ok && (math.IsInf(f, 0) || math.IsNaN(f)) {
		return strings.NewReplacer("inf", "Infinity", "nan", "NaN").Replace(floatRepr(f))
	}
	return scalar(v, "null", "true", "false")
}

func (w *jsonWriter) list(l *list, depth int) error {
	if len(l.items) == 0 {
		w.raw("[]")
		return nil
	}
	w.raw("[")
	for i, x := range l.items {
		if i > 0 {
			w.raw(w.comma)
		}
		w.line(depth + 1)
		if err := w.value(x, depth+1); err != nil {
			return err
		}
	}
	w.line(depth)
	w.raw("]")
	return nil
}

func (w *jsonWriter) dict(d *dict, depth int) error {
	if len(d.keys) == 0 {
		w.raw("{}")
		return nil
	}
	keys := d.keys
	if w.sortedKeys {
		var err error
		if keys, err = sortBy(keys, func(k value) (value, error) { return k, nil }, false); err != nil {
			return err
		}
	}
	w.raw("{")
	for i, k := range keys {
		if i > 0 {
			w.raw(w.comma)
		}
		w.line(depth + 1)
		if t, ok := k.(text); ok {
			w.str(t)
		} else {
			w.raw(`"` + jsonScalar(k) + `"`)
		}
		w.raw(w.colon)
		v, _ := d.get(k)
		if err := w.value(v, depth+1); err != nil {
			return err
		}
	}
	w.line(depth)
	w.raw("}")
	return nil
}

func (w *jsonWriter) str(t text) {
	w.raw(`"`)
	w.b.add(t.mapSpans(func(s string) string { return jsonEscape(s, w.ascii) }))
	w.raw(`"`)
}

func jsonEscape(s string, ascii bool) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\r':
			b.WriteString(`\r`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\b':
			b.WriteString(`\b`)
		case r == '\f':
			b.WriteString(`\f`)
		case r < 0x20, ascii && r > 0x7e && r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		case ascii && r >= 0x10000:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
