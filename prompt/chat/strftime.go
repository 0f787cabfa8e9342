package chat

import (
	"fmt"
	"strings"
	"time"
)

// strftime formats t by C's directives, in English.
func strftime(t time.Time, layout string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(layout); i++ {
		if layout[i] != '%' || i+1 == len(layout) {
			b.WriteByte(layout[i])
			continue
		}
		i++
		pad := layout[i] != '-'
		if !pad && i+1 < len(layout) {
			i++
		}
		if err := directive(&b, t, layout[i], pad); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

func directive(b *strings.Builder, t time.Time, c byte, pad bool) error {
	number := func(n, width int) {
		if !pad {
			width = 0
		}
		fmt.Fprintf(b, "%0*d", width, n)
	}
	if layout, ok := goLayout(c); ok {
		b.WriteString(t.Format(layout))
		return nil
	}
	switch c {
	case 'd':
		number(t.Day(), 2)
	case 'm':
		number(int(t.Month()), 2)
	case 'H':
		number(t.Hour(), 2)
	case 'I':
		number((t.Hour()+11)%12+1, 2)
	case 'M':
		number(t.Minute(), 2)
	case 'S':
		number(t.Second(), 2)
	case 'j':
		number(t.YearDay(), 3)
	case 'w':
		number(int(t.Weekday()), 0)
	case '%':
		b.WriteByte('%')
	default:
		return fmt.Errorf("directive %%%c: %w", c, ErrUnsupported)
	}
	return nil
}

// goLayout spells a directive that needs no computing in Go's layout.
func goLayout(c byte) (string, bool) {
	switch c {
	case 'Y':
		return "2006", true
	case 'y':
		return "06", true
	case 'B':
		return "January", true
	case 'b', 'h':
		return "Jan", true
	case 'A':
		return "Monday", true
	case 'a':
		return "Mon", true
	case 'p':
		return "PM", true
	case 'Z':
		return "MST", true
	case 'z':
		return "-0700", true
	case 'F':
		return "2006-01-02", true
	case 'T':
		return "15:04:05", true
	case 'D':
		return "01/02/06", true
	case 'R':
		return "15:04", true
	}
	return "", false
}
