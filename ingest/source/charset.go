package source

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"

	"ragd/ingest"
)

// decoded is text with the story of its encoding.
type decoded struct {
	text    string
	charset string
	guessed bool
	// replaced counts the byte sequences that stand as U+FFFD in text.
	replaced int
	note     string
}

// decode finds the encoding of a file and decodes it. In this order, the first
// that holds: a byte order mark; UTF-16 without one; valid UTF-8 (never decoded
// any other way); UTF-8 with a few broken bytes; a declaration inside an HTML
// page; CP949 (EUC-KR is a part of it); Windows-1252. The last two need
// evidence in the text and are reported as guesses. Anything else is ErrCharset.
func decode(data []byte, isHTML bool) (decoded, error) {
	if d, ok := decodeMarked(data); ok {
		return d, nil
	}
	if d, ok := decodeUTF16(data); ok {
		return d, nil
	}
	if utf8.Valid(data) {
		return validUTF8(data), nil
	}
	damage := measureUTF8(data)
	if damage.mostlyUTF8() {
		return brokenUTF8(data, damage), nil
	}
	if isHTML {
		if d, ok := decodeDeclared(data); ok {
			return d, nil
		}
	}
	if d, ok := decodeCP949(data); ok {
		return d, nil
	}
	if d, ok := decodeWindows1252(data); ok {
		return d, nil
	}
	if damage.fewBroken(len(data)) {
		return brokenUTF8(data, damage), nil
	}
	return decoded{}, fmt.Errorf("%w: not UTF-8, UTF-16, CP949 or Windows-1252", ingest.ErrCharset)
}

// decodeMarked decodes a file that starts with a byte order mark.
func decodeMarked(data []byte) (decoded, bool) {
	marks := []struct {
		mark    string
		charset string
		enc     encoding.Encoding
	}{
		{"\xef\xbb\xbf", "utf-8", nil},
		{"\xff\xfe\x00\x00", "utf-32le", utf32.UTF32(utf32.LittleEndian, utf32.IgnoreBOM)},
		{"\x00\x00\xfe\xff", "utf-32be", utf32.UTF32(utf32.BigEndian, utf32.IgnoreBOM)},
		{"\xff\xfe", "utf-16le", unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)},
		{"\xfe\xff", "utf-16be", unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM)},
	}
	for _, m := range marks {
		rest, ok := bytes.CutPrefix(data, []byte(m.mark))
		if !ok {
			continue
		}
		if m.enc == nil {
			return brokenUTF8(rest, measureUTF8(rest)), true
		}
		if len(m.mark) == 4 && len(data)%4 != 0 {
			continue // UTF-16 whose first character is U+0000
		}
		return decodeWith(rest, m.enc, m.charset), true
	}
	return decoded{}, false
}

// decodeWith decodes and counts what could not be.
func decodeWith(data []byte, enc encoding.Encoding, name string) decoded {
	out, err := enc.NewDecoder().Bytes(data)
	d := decoded{text: strings.ToValidUTF8(string(out), "\ufffd"), charset: name}
	d.replaced = strings.Count(d.text, "\ufffd")
	if err != nil {
		d.note = "the end of the file could not be decoded: " + err.Error()
	}
	return d
}

// validUTF8 takes the bytes as they are. A very short text whose bytes also
// spell Korean in CP949 is marked as a guess: the bytes alone cannot tell.
func validUTF8(data []byte) decoded {
	d := decoded{text: string(data), charset: "utf-8"}
	if len(data) <= 256 && alsoKorean(data) {
		d.guessed = true
		d.note = "the bytes could also be Korean text in CP949"
	}
	return d
}

func brokenUTF8(data []byte, damage utf8Damage) decoded {
	d := decoded{text: string(data), charset: "utf-8", replaced: damage.broken}
	if damage.broken > 0 {
		d.text = string(bytes.ToValidUTF8(data, []byte("\ufffd")))
		d.replaced = strings.Count(d.text, "\ufffd") - bytes.Count(data, []byte("\ufffd"))
	}
	return d
}

var declaration = regexp.MustCompile(`(?i)<meta[^>]+charset\s*=\s*["']?\s*([\w.:-]+)`)

// declarationBytes is how far into a page its charset may be declared.
const declarationBytes = 4096

// decodeDeclared follows <meta charset> of an HTML page, unless too many characters
// cannot be decoded that way.
func decodeDeclared(data []byte) (decoded, bool) {
	m := declaration.FindSubmatch(data[:min(len(data), declarationBytes)])
	if m == nil {
		return decoded{}, false
	}
	enc, name := charset.Lookup(string(m[1]))
	if enc == nil || name == "utf-8" {
		return decoded{}, false
	}
	d := decodeWith(data, enc, name)
	return d, d.replaced*brokenShare <= utf8.RuneCountInString(d.text)
}

// decodeUTF16 decodes UTF-16 without a mark.
func decodeUTF16(data []byte) (decoded, bool) {
	order, name, ok := utf16Order(data[:min(len(data), sniffBytes)])
	if !ok {
		return decoded{}, false
	}
	d := decodeWith(data, unicode.UTF16(order, unicode.IgnoreBOM), name)
	d.guessed = true
	return d, true
}

// utf16Like reports text in UTF-16, with a mark or by evidence. One that was cut inside
// a character, behind a mark, has to look like text as well.
func utf16Like(b []byte) bool {
	if !bytes.HasPrefix(b, []byte("\xff\xfe")) && !bytes.HasPrefix(b, []byte("\xfe\xff")) {
		_, _, ok := utf16Order(b)
		return ok
	}
	if len(b)%2 == 0 {
		return true
	}
	d, _ := decodeMarked(b[:len(b)-1])
	return ordinaryShare(d.text) >= ordinaryText
}

// ordinaryText is the share of ordinary characters that text has at the least.
const ordinaryText = 0.97

// utf16Order tells the byte order of UTF-16 without a mark. Spaces, digits, line
// ends and Latin letters leave zero bytes in the high half of the byte pairs and
// hardly any in the low half; and read in that order the characters have to be
// ordinary ones.
func utf16Order(b []byte) (order unicode.Endianness, name string, ok bool) {
	if len(b) < 4 || len(b)%2 != 0 {
		return order, "", false
	}
	var zeros [2]int
	for i, c := range b {
		if c == 0 {
			zeros[i%2]++
		}
	}
	high, low := zeros[1], zeros[0]
	order, name = unicode.LittleEndian, "utf-16le"
	if low > high {
		high, low = low, high
		order, name = unicode.BigEndian, "utf-16be"
	}
	if high*20 < len(b) || low*2 > high {
		return order, "", false
	}
	text := decodeWith(b, unicode.UTF16(order, unicode.IgnoreBOM), name).text
	return order, name, ordinaryShare(text) >= ordinaryText
}

// ordinaryShare is the share of characters that everyday Korean, Latin,
// Japanese and Chinese text is made of.
func ordinaryShare(s string) float64 {
	total, good := 0, 0
	for _, r := range s {
		total++
		switch {
		case r == '\n' || r == '\r' || r == '\t' || r >= 0x20 && r < 0x7f,
			r >= 0xa0 && r <= 0x17f, r >= 0x370 && r <= 0x4ff,
			r >= 0x2010 && r <= 0x2044, r >= 0x20a0 && r <= 0x20bf, r >= 0x2190 && r <= 0x21ff, r >= 0x2500 && r <= 0x27bf, r >= 0x1f300 && r <= 0x1faff,
			r >= 0x3000 && r <= 0x318f, r >= 0xac00 && r <= 0xd7a3, r >= 0x4e00 && r <= 0x9fff, r >= 0xff00 && r <= 0xffef:
			good++
		}
	}
	if total == 0 {
		return 0
	}
	return float64(good) / float64(total)
}

var (
	cp949       = korean.EUCKR // the decoder takes the whole of CP949
	windows1252 = charmap.Windows1252
)
