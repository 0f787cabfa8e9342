package chat

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// unescape resolves Python's string escapes. A backslash before any other
// character stays.
func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		n, err := escape(&b, s[i:])
		if err != nil {
			return "", err
		}
		i += n - 1
	}
	return b.String(), nil
}

// escape writes what the escape s (after its backslash) stands for and gives
// its length.
func escape(b *strings.Builder, s string) (int, error) {
	const simple, meaning = "\\'\"abfnrtv", "\\'\"\a\b\f\n\r\t\v"
	if i := strings.IndexByte(simple, s[0]); i >= 0 {
		b.WriteByte(meaning[i])
		return 1, nil
	}
	switch c := s[0]; {
	case c == '\n':
		return 1, nil
	case c == 'x':
		return codePoint(b, s, 2)
	case c == 'u':
		return codePoint(b, s, 4)
	case c == 'U':
		return codePoint(b, s, 8)
	case c >= '0' && c <= '7':
		n := 1
		for n < 3 && n < len(s) && s[n] >= '0' && s[n] <= '7' {
			n++
		}
		v, err := strconv.ParseUint(s[:n], 8, 32)
		b.WriteRune(rune(v))
		return n, err
	}
	b.WriteByte('\\')
	b.WriteByte(s[0])
	return 1, nil
}

func codePoint(b *strings.Builder, s string, digits int) (int, error) {
	if len(s) < 1+digits {
		return 0, fmt.Errorf("escape \\%s is too short", s)
	}
	v, err := strconv.ParseUint(s[1:1+digits], 16, 32)
	if err != nil || v > utf8.MaxRune || !utf8.ValidRune(rune(v)) {
		return 0, fmt.Errorf("escape \\%s is no character", s[:1+digits])
	}
	b.WriteRune(rune(v))
	return 1 + digits, nil
}
