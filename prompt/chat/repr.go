package chat

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// maxData is how deep lists and mappings may lie inside one another.
const maxData = 100

// str is what a value looks like when it is written out (Python's str).
func (in *interp) str(v value) (text, error) {
	switch v := v.(type) {
	case text:
		return v, nil
	case undefined:
		return text{}, nil
	}
	var b builder
	if err := in.repr(&b, v, 0); err != nil {
		return text{}, err
	}
	return b.text(), in.spend(b.len())
}

// repr writes a value as Python's repr does.
func (in *interp) repr(b *builder, v value, depth int) error {
	if depth > maxData {
		return fmt.Errorf("data nested too deep: %w", ErrLimit)
	}
	if err := in.step(1); err != nil {
		return err
	}
	switch v := v.(type) {
	case text:
		in.reprText(b, v)
	case undefined:
		b.addString("Undefined", origin{})
	case *list:
		return in.reprList(b, v, depth)
	case *dict:
		return in.reprDict(b, v, depth)
	default:
		b.addString(scalar(v, "None", "True", "False"), origin{})
	}
	return in.checkSize(b.len())
}

// scalar spells what is neither string nor container.
func scalar(v value, none, yes, no string) string {
	switch v := v.(type) {
	case nil:
		return none
	case bool:
		if v {
			return yes
		}
		return no
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return floatRepr(v)
	}
	return "<" + typeName(v) + ">"
}

func (in *interp) reprList(b *builder, l *list, depth int) error {
	open, end := "[", "]"
	if l.tuple {
		open, end = "(", ")"
		if len(l.items) == 1 {
			end = ",)"
		}
	}
	b.addString(open, origin{})
	for i, x := range l.items {
		if i > 0 {
			b.addString(", ", origin{})
		}
		if err := in.repr(b, x, depth+1); err != nil {
			return err
		}
	}
	b.addString(end, origin{})
	return nil
}

func (in *interp) reprDict(b *builder, d *dict, depth int) error {
	b.addString("{", origin{})
	for i, k := range d.keys {
		if i > 0 {
			b.addString(", ", origin{})
		}
		if err := in.repr(b, k, depth+1); err != nil {
			return err
		}
		b.addString(": ", origin{})
		if err := in.repr(b, d.values[i], depth+1); err != nil {
			return err
		}
	}
	b.addString("}", origin{})
	return nil
}

func (in *interp) reprText(b *builder, t text) {
	quote := "'"
	if strings.Contains(t.s, "'") && !strings.Contains(t.s, `"`) {
		quote = `"`
	}
	b.addString(quote, origin{})
	b.add(t.mapSpans(func(s string) string {
		var e strings.Builder
		for _, r := range s {
			reprRune(&e, r, rune(quote[0]))
		}
		return e.String()
	}))
	b.addString(quote, origin{})
}

func reprRune(e *strings.Builder, r, quote rune) {
	switch {
	case r == quote || r == '\\':
		e.WriteByte('\\')
		e.WriteRune(r)
	case r == '\n':
		e.WriteString(`\n`)
	case r == '\r':
		e.WriteString(`\r`)
	case r == '\t':
		e.WriteString(`\t`)
	case unicode.IsPrint(r):
		e.WriteRune(r)
	case r < 0x100:
		fmt.Fprintf(e, `\x%02x`, r)
	case r < 0x10000:
		fmt.Fprintf(e, `\u%04x`, r)
	default:
		fmt.Fprintf(e, `\U%08x`, r)
	}
}
