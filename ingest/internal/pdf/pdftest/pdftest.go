// Package pdftest writes small PDF files for tests.
package pdftest

import (
	"bytes"
	"fmt"
	"strings"
	"unicode/utf16"
)

// Line is a line of text: its baseline starts at X, Y (points from the lower left
// corner of an A4 page).
type Line struct {
	X, Y, Size float64
	Text       string
}

// File writes one page for each list of lines, with the title of the document.
// Every character is its UTF-16 code in a font without outlines, half as wide as
// the size is high; a map to Unicode says so, as in files that programs write.
func File(title string, pages ...[]Line) []byte {
	w := &writer{}
	w.WriteString("%PDF-1.7\n")
	kids := make([]string, len(pages))
	for i := range pages {
		kids[i] = fmt.Sprintf("%d 0 R", firstPage+2*i)
	}
	w.object("<< /Type /Catalog /Pages 2 0 R >>")
	w.object(fmt.Sprintf("<< /Type /Pages /Kids [%s] /Count %d >>", strings.Join(kids, " "), len(pages)))
	w.object("<< /Type /Font /Subtype /Type0 /BaseFont /Plain /Encoding /Identity-H /DescendantFonts [4 0 R] /ToUnicode 6 0 R >>")
	w.object("<< /Type /Font /Subtype /CIDFontType2 /BaseFont /Plain /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity) /Supplement 0 >> /DW 500 /FontDescriptor 5 0 R >>")
	w.object("<< /Type /FontDescriptor /FontName /Plain /Flags 4 /FontBBox [0 -200 1000 800] /ItalicAngle 0 /Ascent 800 /Descent -200 /CapHeight 700 /StemV 80 >>")
	w.stream(toUnicode)
	w.object("<< /Title <" + codes("\ufeff"+title) + "> >>")
	for i, lines := range pages {
		w.object(fmt.Sprintf("<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F 3 0 R >> >> /Contents %d 0 R >>", firstPage+2*i+1))
		var c strings.Builder
		for _, l := range lines {
			fmt.Fprintf(&c, "BT /F %g Tf 1 0 0 1 %g %g Tm <%s> Tj ET\n", l.Size, l.X, l.Y, codes(l.Text))
		}
		w.stream(c.String())
	}
	return w.end()
}

// firstPage is the number of the first page's object.
const firstPage = 8

const toUnicode = `/CIDInit /ProcSet findresource begin 12 dict begin begincmap
/CMapName /Plain-UTF16 def /CMapType 2 def
1 begincodespacerange <0000> <FFFF> endcodespacerange
1 beginbfrange <0000> <FFFF> <0000> endbfrange
endcmap CMapName currentdict /CMap defineresource pop end end`

func codes(text string) string {
	var b strings.Builder
	for _, u := range utf16.Encode([]rune(text)) {
		fmt.Fprintf(&b, "%04X", u)
	}
	return b.String()
}

type writer struct {
	bytes.Buffer
	offsets []int
}

func (w *writer) object(body string) {
	w.offsets = append(w.offsets, w.Len())
	fmt.Fprintf(w, "%d 0 obj\n%s\nendobj\n", len(w.offsets), body)
}

func (w *writer) stream(body string) {
	w.object(fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(body), body))
}

func (w *writer) end() []byte {
	at := w.Len()
	fmt.Fprintf(w, "xref\n0 %d\n0000000000 65535 f \n", len(w.offsets)+1)
	for _, o := range w.offsets {
		fmt.Fprintf(w, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(w, "trailer << /Size %d /Root 1 0 R /Info 7 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(w.offsets)+1, at)
	return w.Bytes()
}
