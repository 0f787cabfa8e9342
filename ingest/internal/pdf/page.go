package pdf

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/klippa-app/go-pdfium"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
)

// page is the text of one page in reading order.
type page struct {
	lines  []line
	height float64 // points
}

// line is one line of text. Lengths are points; y grows upwards from the page's
// lower edge.
type line struct {
	text        string
	size        float64 // of the font as it is drawn
	left, right float64
	y           float64 // of the baseline
	spaced      bool    // a space stands after the last character
	hyphen      bool    // the last word goes on in the next line
}

// textPage reads a page character by character.
type textPage struct {
	pdfium pdfium.Pdfium
	page   requests.Page
	text   references.FPDF_TEXTPAGE
	room   int // characters that may still come
	count  int
}

func (t *textPage) read() (page, error) {
	size, err := t.pdfium.FPDF_GetPageSizeByIndex(&requests.FPDF_GetPageSizeByIndex{Document: t.page.ByIndex.Document, Index: t.page.ByIndex.Index})
	if err != nil {
		return page{}, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	loaded, err := t.pdfium.FPDFText_LoadPage(&requests.FPDFText_LoadPage{Page: t.page})
	if err != nil {
		return page{}, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	t.text = loaded.TextPage
	defer t.close()
	count, err := t.pdfium.FPDFText_CountChars(&requests.FPDFText_CountChars{TextPage: t.text})
	if err != nil {
		return page{}, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	if t.count = count.Count; t.count > t.room {
		return page{}, fmt.Errorf("%w: too many characters", ErrTooLong)
	}
	lines, err := t.lines()
	return page{lines: lines, height: size.Height}, err
}

func (t *textPage) close() {
	_, _ = t.pdfium.FPDFText_ClosePage(&requests.FPDFText_ClosePage{TextPage: t.text})
}

// Characters that PDFium puts where a word was divided at a line's end.
const (
	hyphenMark    = 0x02
	hyphenMarkOld = 0xFFFE
)

// lines splits the page's characters at the line ends that PDFium found.
func (t *textPage) lines() ([]line, error) {
	var lines []line
	var units []uint16
	var at []int // index of the character of each unit
	hyphen := false
	flush := func() error {
		l, err := t.line(units, at, hyphen)
		if l.text != "" && err == nil {
			lines = append(lines, l)
		}
		units, at, hyphen = units[:0], at[:0], false
		return err
	}
	for i := range t.count {
		c, err := t.pdfium.FPDFText_GetUnicode(&requests.FPDFText_GetUnicode{TextPage: t.text, Index: i})
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBroken, err)
		}
		switch u := rune(c.Unicode); {
		case u == '\n':
			if err := flush(); err != nil {
				return nil, err
			}
		case u == hyphenMark || u == hyphenMarkOld:
			hyphen = true
		case u == '\t' || u >= ' ':
			before := len(units)
			units = appendUnit(units, u)
			for range len(units) - before {
				at = append(at, i)
			}
		}
	}
	return lines, flush()
}

// appendUnit keeps halves of surrogate pairs as they come.
func appendUnit(units []uint16, u rune) []uint16 {
	if u <= math.MaxUint16 {
		return append(units, uint16(u))
	}
	return utf16.AppendRune(units, u)
}

// line measures the characters from the first to the last that is no space.
func (t *textPage) line(units []uint16, at []int, hyphen bool) (line, error) {
	raw := string(utf16.Decode(units))
	text := strings.Join(strings.Fields(strings.ReplaceAll(raw, "\u00ad", "")), " ")
	if text == "" {
		return line{}, nil
	}
	space := func(u uint16) bool { return unicode.IsSpace(rune(u)) }
	first := slices.IndexFunc(units, func(u uint16) bool { return !space(u) })
	last := len(units) - 1
	for space(units[last]) {
		last--
	}
	l := line{text: text, hyphen: hyphen, spaced: last < len(units)-1}
	box, err := t.pdfium.FPDFText_GetCharBox(&requests.FPDFText_GetCharBox{TextPage: t.text, Index: at[first]})
	if err != nil {
		return l, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	end, err := t.pdfium.FPDFText_GetCharBox(&requests.FPDFText_GetCharBox{TextPage: t.text, Index: at[last]})
	if err != nil {
		return l, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	l.left, l.right = min(box.Left, end.Left), max(box.Right, end.Right)
	middle := first + (last-first)/2
	for space(units[middle]) {
		middle--
	}
	l.size, l.y, err = t.sizeAt(at[middle])
	return l, err
}

// sizeAt is the drawn font size and the baseline of a character: producers may
// set size 1 and scale it by the text matrix.
func (t *textPage) sizeAt(i int) (size, y float64, err error) {
	f, err := t.pdfium.FPDFText_GetFontSize(&requests.FPDFText_GetFontSize{TextPage: t.text, Index: i})
	if err != nil {
		return 0, 0, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	m, err := t.pdfium.FPDFText_GetMatrix(&requests.FPDFText_GetMatrix{TextPage: t.text, Index: i})
	if err != nil {
		return 0, 0, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	o, err := t.pdfium.FPDFText_GetCharOrigin(&requests.FPDFText_GetCharOrigin{TextPage: t.text, Index: i})
	if err != nil {
		return 0, 0, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	return f.FontSize * math.Hypot(float64(m.Matrix.C), float64(m.Matrix.D)), o.Y, nil
}
