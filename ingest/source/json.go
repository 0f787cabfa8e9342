package source

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"ragd/ingest"
)

// extractJSON writes escaped letters as letters: many programs write no other than
// ASCII, and "\uc5f4\uc1e0" is found by nobody who asks for 열쇠. Everything else stays.
func extractJSON(d *ingest.Document) error {
	d.Text = ingest.ComposeHangul(unescapeLetters(d.Text))
	return nil
}

// unescapeLetters replaces \uXXXX, which RFC 8259 section 7 defines, where it stands
// for a character beyond ASCII that can be seen.
func unescapeLetters(s string) string {
	if !strings.Contains(s, `\u`) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	for {
		at := strings.IndexByte(s, '\\')
		if at < 0 || at+1 == len(s) {
			b.WriteString(s)
			return b.String()
		}
		b.WriteString(s[:at])
		r, size := escaped(s[at:])
		if r >= utf8.RuneSelf && r != utf8.RuneError && unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			size = 2 // the backslash and what it is in front of
			b.WriteString(s[at : at+size])
		}
		s = s[at+size:]
	}
}

// escaped is the character that an escape at the start of s stands for, one of two
// halves included, and its length; 0 for any other.
func escaped(s string) (r rune, size int) {
	const one = len(`\u0000`)
	r = unit(s)
	if utf16.IsSurrogate(r) && len(s) > one {
		return utf16.DecodeRune(r, unit(s[one:])), 2 * one
	}
	return r, one
}

// unit is the number of an escape at the start of s, 0 when there is none.
func unit(s string) rune {
	digits, ok := strings.CutPrefix(s[:min(len(s), len(`\u0000`))], `\u`)
	n, err := strconv.ParseUint(digits, 16, 16)
	if !ok || err != nil || len(digits) != 4 {
		return 0
	}
	return rune(n)
}
