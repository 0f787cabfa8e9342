package source

import (
	"unicode"
	"unicode/utf8"
)

// utf8Damage counts what a text would be if it were read as UTF-8.
type utf8Damage struct {
	multibyte int // whole characters of two bytes and more
	long      int // of these, of three bytes and more, private ones left out
	broken    int // bytes that belong to no character
}

func measureUTF8(b []byte) utf8Damage {
	var d utf8Damage
	for len(b) > 0 {
		if b[0] < utf8.RuneSelf {
			b = b[1:]
			continue
		}
		r, n := utf8.DecodeRune(b)
		switch {
		case r == utf8.RuneError && n == 1:
			d.broken++
		case n > 2 && !unicode.Is(unicode.Co, r):
			d.long++
			d.multibyte++
		default:
			d.multibyte++
		}
		b = b[n:]
	}
	return d
}

// mostlyUTF8 reports a UTF-8 text with some damage. Two-byte characters alone
// prove little: one pair in ten of a CP949 text looks like one.
func (d utf8Damage) mostlyUTF8() bool {
	return d.long > 0 && d.broken*4 <= d.multibyte || d.multibyte > 0 && d.broken*10 <= d.multibyte
}

// fewBroken reports ASCII text with stray bytes that no known encoding
// explains: at most one byte in twenty.
func (d utf8Damage) fewBroken(size int) bool {
	return d.broken*20 <= size
}
