package source

import (
	"fmt"
	"regexp"
	"strings"

	"ragd/ingest"
)

var zeros = regexp.MustCompile("[ \t]*\x00[\x00 \t]*")

// decodeInto fills the text of d from the file's bytes and says what was
// changed: broken sequences stand as U+FFFD, runs of U+0000 become one space
// (the database holds none), line ends become "\n". Hangul that is spelt by its letters
// is the same text composed, which is not told.
func decodeInto(d *ingest.Document, data []byte, f format) error {
	t, err := decode(data, f.html)
	if err != nil {
		return err
	}
	d.Charset, d.CharsetGuessed = t.charset, t.guessed
	if t.guessed {
		warn(d, "encoding guessed: %s", t.charset)
	}
	if t.note != "" {
		warn(d, "%s", t.note)
	}
	if t.replaced > 0 {
		warn(d, "%d broken %s sequence(s) replaced by U+FFFD", t.replaced, t.charset)
	}
	if n := strings.Count(t.text, "\ufffd") - t.replaced; n > 0 {
		warn(d, "%d U+FFFD already in the file: its text was damaged earlier", n)
	}
	d.Text = strings.TrimPrefix(t.text, "\ufeff")
	if n := strings.Count(d.Text, "\x00"); n > 0 {
		d.Text = zeros.ReplaceAllString(d.Text, " ")
		warn(d, "%d zero byte(s) replaced by spaces", n)
	}
	d.Text = strings.ReplaceAll(d.Text, "\r\n", "\n")
	d.Text = strings.ReplaceAll(d.Text, "\r", "\n")
	d.Text = ingest.ComposeHangul(d.Text)
	return nil
}

func warn(d *ingest.Document, format string, args ...any) {
	d.Warnings = append(d.Warnings, fmt.Sprintf(format, args...))
}
