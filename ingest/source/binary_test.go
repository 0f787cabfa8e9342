package source_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ragd/ingest/internal/pdf"
	"ragd/ingest/internal/pdf/pdftest"
)

// TestPDF holds OB-05: a page without text is told, a file without any fails and
// says why; text is found on the page where it stands.
func TestPDF(t *testing.T) {
	line := func(s string) []pdftest.Line { return []pdftest.Line{{X: 50, Y: 700, Size: 10, Text: s}} }
	d := mustExtract(t, "permits.pdf", pdftest.File("허가 대장", nil, line("크레인 허가 번호는 CP-7731이다.")))
	if d.Type != "application/pdf" || d.Title != "허가 대장" || d.Text != "크레인 허가 번호는 CP-7731이다." {
		t.Errorf("got %s, title %q, text %q", d.Type, d.Title, d.Text)
	}
	if diff := cmp.Diff([]int{0, 0}, d.Pages); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	if !slices.ContainsFunc(d.Warnings, func(w string) bool { return strings.Contains(w, "1 of 2 pages have no text") }) {
		t.Errorf("warnings %q", d.Warnings)
	}
	if _, err := extract(t, "scan.pdf", pdftest.File("", nil, nil)); !errors.Is(err, pdf.ErrNoText) {
		t.Errorf("a scan: %v", err)
	}
	if d := mustExtract(t, "named.txt", pdftest.File("", line("named wrongly"))); d.Type != "application/pdf" {
		t.Errorf("a PDF named .txt is read as %s", d.Type)
	}
}

func TestTitlesThatProgramsWrote(t *testing.T) {
	page := []pdftest.Line{{X: 50, Y: 700, Size: 20, Text: "Real heading"}, {X: 50, Y: 600, Size: 10, Text: strings.Repeat("text ", 40)}}
	for title, want := range map[string]string{
		"Microsoft Word - plan.doc": "Real heading", "제목 없음": "Real heading", "report_v3.hwp": "Real heading", "": "Real heading", "연간 계획": "연간 계획",
	} {
		if d := mustExtract(t, "a.pdf", pdftest.File(title, page)); d.Title != want {
			t.Errorf("title %q became %q, want %q", title, d.Title, want)
		}
	}
}

// TestWordDocument holds OB-06: tables, cells of several paragraphs and text
// boxes are read, in their order.
func TestWordDocument(t *testing.T) {
	p := func(s string) string { return "<w:p><w:r><w:t>" + s + "</w:t></w:r></w:p>" }
	row := func(cells ...string) string {
		return "<w:tr><w:tc>" + strings.Join(cells, "</w:tc><w:tc>") + "</w:tc></w:tr>"
	}
	body := p("intro") + "<w:tbl>" + row(p("Crane"), p("Code")) + row(p("C-3"), p("first")+p("FELDSPAR")) + "</w:tbl>" + p("after") +
		`<w:p><w:r><w:pict><v:textbox><w:txbxContent>` + p("siren test on Thursday") + `</w:txbxContent></v:textbox></w:pict></w:r></w:p>`
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	w, err := z.Create("word/document.xml")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte(`<w:document xmlns:w="w" xmlns:v="v"><w:body>` + body + `</w:body></w:document>`)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	d := mustExtract(t, "plan.docx", b.Bytes())
	want := "intro\n\n| Crane | Code |\n| --- | --- |\n| C-3 | first FELDSPAR |\n\nafter\n\nsiren test on Thursday"
	if diff := cmp.Diff(want, d.Text); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if d.Title != "plan.docx" || !d.Markdown {
		t.Errorf("title %q, markdown %v", d.Title, d.Markdown)
	}
}
