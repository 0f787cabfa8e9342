package office_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/xuri/excelize/v2"

	"ragd/ingest/internal/office"
)

// pack writes parts, given as name and content in turn, as a document.
func pack(t testing.TB, parts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		w, err := z.Create(parts[i])
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(parts[i+1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func read(t testing.TB, data []byte) office.Document {
	t.Helper()
	d, err := office.Read(data, office.Detect(data), office.DefaultLimits())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

const wordSpace = `xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006"`

func wordBody(body string) string {
	return `<w:document ` + wordSpace + `><w:body>` + body + `</w:body></w:document>`
}

func p(properties, text string) string {
	return "<w:p><w:pPr>" + properties + "</w:pPr><w:r><w:t>" + text + "</w:t></w:r></w:p>"
}

func TestWord(t *testing.T) {
	styles := `<w:styles ` + wordSpace + `>
<w:style w:styleId="a1"><w:name w:val="heading 1"/></w:style>
<w:style w:styleId="mine"><w:name w:val="내 제목"/><w:basedOn w:val="a1"/></w:style>
<w:style w:styleId="deep"><w:name w:val="x"/><w:pPr><w:outlineLvl w:val="2"/></w:pPr></w:style>
<w:style w:styleId="dots"><w:name w:val="List Bullet"/><w:pPr><w:numPr><w:numId w:val="1"/></w:numPr></w:pPr></w:style>
<w:style w:styleId="loop"><w:basedOn w:val="loop"/></w:style></w:styles>`
	box := `<w:p><w:r><w:t>before</w:t></w:r><w:r><mc:AlternateContent><mc:Choice><w:txbxContent>` + p("", "in the box") +
		`</w:txbxContent></mc:Choice><mc:Fallback><w:txbxContent>` + p("", "in the box") + `</w:txbxContent></mc:Fallback></mc:AlternateContent></w:r></w:p>`
	cell := func(properties, blocks string) string {
		return "<w:tc><w:tcPr>" + properties + "</w:tcPr>" + blocks + "</w:tc>"
	}
	table := "<w:tbl><w:tr>" + cell("", p("", "이름")) + cell("", p("", "값")) + cell("", p("", "단위")) + "</w:tr><w:tr>" +
		cell(`<w:vMerge w:val="restart"/>`, p("", "C-3")) + cell("", p("", "one")+p("", "two | three")) + cell("", p("", "mm")) + "</w:tr><w:tr>" +
		cell(`<w:vMerge/>`, p("", "")) + cell(`<w:gridSpan w:val="2"/>`, p("", "wide")) + "</w:tr></w:tbl>"
	for _, c := range []struct{ name, body, want string }{
		{"headings by style, base style and own level", p(`<w:pStyle w:val="a1"/>`, "One") + p(`<w:pStyle w:val="mine"/>`, "Mine") + p(`<w:pStyle w:val="deep"/>`, "Deep") + p(`<w:outlineLvl w:val="1"/>`, "Own"), "# One\n\n# Mine\n\n### Deep\n\n## Own"},
		{"lists", p(`<w:pStyle w:val="dots"/>`, "a") + p(`<w:numPr><w:ilvl w:val="1"/><w:numId w:val="4"/></w:numPr>`, "b") + p(`<w:pStyle w:val="dots"/><w:numPr><w:numId w:val="0"/></w:numPr>`, "c"), "- a\n  - b\n\nc"},
		{"a table keeps its rows", p("", "intro") + table + p("", "after"), "intro\n\n| 이름 | 값 | 단위 |\n| --- | --- | --- |\n| C-3 | one two \\| three | mm |\n| C-3 | wide |  |\n\nafter"},
		{"a text box once, after its paragraph", box, "before\n\nin the box"},
		{"tracked changes: what was deleted is gone", `<w:p><w:ins><w:r><w:t>new</w:t></w:r></w:ins><w:del><w:r><w:delText>old</w:delText></w:r></w:del></w:p>`, "new"},
		{"a content control, a field, a break", `<w:sdt><w:sdtContent><w:p><w:r><w:instrText>PAGE</w:instrText><w:t>a</w:t><w:br/><w:t>b</w:t><w:tab/><w:t>c</w:t></w:r></w:p></w:sdtContent></w:sdt>`, "a\nb c"},
		{"a note", `<w:p><w:r><w:t>see</w:t><w:footnoteReference w:id="3"/></w:r></w:p>`, "see [3]\n\n[3] the note"},
		{"Markdown's own marks are text", p("", "# no heading"), `\# no heading`},
		{"a style based on itself", p(`<w:pStyle w:val="loop"/>`, "text"), "text"},
	} {
		t.Run(c.name, func(t *testing.T) {
			parts := []string{"word/document.xml", wordBody(c.body), "word/styles.xml", styles}
			if strings.Contains(c.body, "footnoteReference") {
				parts = append(parts, "word/footnotes.xml", `<w:footnotes `+wordSpace+`><w:footnote w:type="separator" w:id="0"/><w:footnote w:id="3">`+p("", "the note")+`</w:footnote></w:footnotes>`)
			}
			d := read(t, pack(t, parts...))
			if diff := cmp.Diff(c.want, d.Markdown); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
		})
	}
}

func TestProperties(t *testing.T) {
	core := `<cp:coreProperties xmlns:cp="c" xmlns:dc="d"><dc:title>설비 안내</dc:title><dc:creator>시설팀</dc:creator></cp:coreProperties>`
	d := read(t, pack(t, "word/document.xml", wordBody(p("", "text")), "docProps/core.xml", core))
	if d.Title != "설비 안내" || d.Author != "시설팀" {
		t.Errorf("got %q by %q", d.Title, d.Author)
	}
}

func TestSlides(t *testing.T) {
	const space = `xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"`
	rels := func(pairs ...string) string {
		var b strings.Builder
		for i := 0; i < len(pairs); i += 2 {
			fmt.Fprintf(&b, `<Relationship Id="%s" Target="%s"/>`, pairs[i], pairs[i+1])
		}
		return `<Relationships xmlns="x">` + b.String() + `</Relationships>`
	}
	shape := func(kind, text string) string {
		return `<p:sp><p:nvSpPr><p:nvPr><p:ph type="` + kind + `"/></p:nvPr></p:nvSpPr><p:txBody><a:p><a:r><a:t>` + text + `</a:t></a:r></a:p></p:txBody></p:sp>`
	}
	cell := func(s string) string {
		return `<a:tc><a:txBody><a:p><a:r><a:t>` + s + `</a:t></a:r></a:p></a:txBody></a:tc>`
	}
	d := read(t, pack(
		t,
		"ppt/presentation.xml", `<p:presentation `+space+`><p:sldIdLst><p:sldId id="256" r:id="b"/><p:sldId id="257" r:id="a"/></p:sldIdLst></p:presentation>`,
		"ppt/_rels/presentation.xml.rels", rels("a", "slides/s1.xml", "b", "/ppt/slides/s2.xml"),
		"ppt/slides/s1.xml", `<p:sld `+space+`>`+shape("title", "Numbers")+`<a:tbl><a:tr>`+cell("품목")+cell("수")+`</a:tr><a:tr>`+cell("밸브")+cell("4")+`</a:tr></a:tbl></p:sld>`,
		"ppt/slides/s2.xml", `<p:sld `+space+`>`+shape("body", "first in the file")+shape("title", "Shown first")+shape("sldNum", "1")+`</p:sld>`,
		"ppt/slides/_rels/s2.xml.rels", rels("n", "../notesSlides/n.xml"),
		"ppt/notesSlides/n.xml", `<p:notes `+space+`>`+shape("body", "say thanks")+shape("sldNum", "1")+`</p:notes>`,
	))
	want := "## Shown first\n\nfirst in the file\n\nsay thanks\n\n## Numbers\n\n| 품목 | 수 |\n| --- | --- |\n| 밸브 | 4 |"
	if diff := cmp.Diff(want, d.Markdown); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{0, strings.Index(want, "## Numbers")}, d.Pages); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}

func TestSheets(t *testing.T) {
	f := excelize.NewFile()
	defer f.Close()
	for cell, v := range map[string]any{"A1": "품목", "B1": "비율", "A2": "밸브, 소형", "B2": 0.25, "A4": "호스"} {
		if err := f.SetCellValue("Sheet1", cell, v); err != nil {
			t.Fatal(err)
		}
	}
	percent, err := f.NewStyle(&excelize.Style{NumFmt: 9})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.SetCellStyle("Sheet1", "B2", "B2", percent), f.SetDocProps(&excelize.DocProperties{Title: "부품표"})); err != nil {
		t.Fatal(err)
	}
	if _, err := f.NewSheet("Hidden"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.SetCellValue("Hidden", "A1", "secret"), f.SetSheetVisible("Hidden", false)); err != nil {
		t.Fatal(err)
	}
	b, err := f.WriteToBuffer()
	if err != nil {
		t.Fatal(err)
	}
	d := read(t, b.Bytes())
	want := "# Sheet1\n\n| 품목 | 비율 |\n| --- | --- |\n| 밸브, 소형 | 25% |\n| 호스 |"
	if diff := cmp.Diff(want, d.Markdown); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if d.Title != "부품표" {
		t.Errorf("title %q", d.Title)
	}
}

func TestHangul(t *testing.T) {
	const space = `xmlns:hp="http://www.hancom.co.kr/hwpml/2011/paragraph" xmlns:hs="http://www.hancom.co.kr/hwpml/2011/section"`
	para := func(style, inner string) string {
		return `<hp:p styleIDRef="` + style + `"><hp:run>` + inner + `</hp:run></hp:p>`
	}
	text := func(s string) string { return para("0", "<hp:t>"+s+"</hp:t>") }
	cell := func(row, col, down int, s string) string {
		return fmt.Sprintf(`<hp:tc><hp:subList>%s</hp:subList><hp:cellAddr colAddr="%d" rowAddr="%d"/><hp:cellSpan colSpan="1" rowSpan="%d"/></hp:tc>`, text(s), col, row, down)
	}
	table := `<hp:tbl><hp:tr>` + cell(0, 0, 1, "설비") + cell(0, 1, 1, "주기") + `</hp:tr><hp:tr>` + cell(1, 0, 2, "보일러") + cell(1, 1, 1, "매주") + `</hp:tr><hp:tr>` + cell(2, 1, 1, "매월") + `</hp:tr></hp:tbl>`
	header := `<hh:head xmlns:hh="h"><hh:style id="2" name="개요 1" engName="Outline 1"/></hh:head>`
	d := read(t, pack(
		t,
		"Contents/header.xml", header,
		"Contents/content.hpf", `<opf:package xmlns:opf="o"><opf:metadata><opf:title>점검 안내</opf:title></opf:metadata></opf:package>`,
		"Contents/section0.xml", `<hs:sec `+space+`>`+para("2", "<hp:t>점검</hp:t>")+
			para("0", `<hp:ctrl><hp:header><hp:subList>`+text("머리말")+`</hp:subList></hp:header></hp:ctrl><hp:t>압력은<hp:tab/>2.4 bar<hp:lineBreak/>둘째 줄</hp:t>`+table)+`</hs:sec>`,
		"Contents/section1.xml", `<hs:sec `+space+`>`+text("다음 구역")+`</hs:sec>`,
	))
	want := "# 점검\n\n압력은 2.4 bar\n둘째 줄\n\n| 설비 | 주기 |\n| --- | --- |\n| 보일러 | 매주 |\n| 보일러 | 매월 |\n\n다음 구역"
	if diff := cmp.Diff(want, d.Markdown); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if d.Title != "점검 안내" {
		t.Errorf("title %q", d.Title)
	}
}

func TestLimits(t *testing.T) {
	small := office.Limits{Bytes: 4096, Nodes: 200, Rows: 10, Cells: 20}
	f := excelize.NewFile()
	defer f.Close()
	for i := range 30 {
		if err := f.SetCellValue("Sheet1", fmt.Sprintf("A%d", i+1), i); err != nil {
			t.Fatal(err)
		}
	}
	book, err := f.WriteToBuffer()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		data   []byte
		limits office.Limits
		want   error
	}{
		{"a bomb", pack(t, "word/document.xml", wordBody(p("", strings.Repeat(" ", 1<<20)))), small, office.ErrTooLarge},
		{"too many elements", pack(t, "word/document.xml", wordBody(strings.Repeat("<w:p/>", 300))), small, office.ErrTooLarge},
		{"too deep", pack(t, "word/document.xml", wordBody(strings.Repeat("<w:sdt>", 400)+strings.Repeat("</w:sdt>", 400))), office.DefaultLimits(), office.ErrTooLarge},
		{"too many rows", book.Bytes(), office.Limits{Bytes: 1 << 20, Nodes: 1000, Rows: 10, Cells: 1000}, office.ErrTooLarge},
		{"broken XML", pack(t, "word/document.xml", "<w:document><w:body>"), office.DefaultLimits(), office.ErrBroken},
		{"a slide is missing", pack(t, "ppt/presentation.xml", `<p:presentation xmlns:p="p" xmlns:r="relationships"><p:sldIdLst><p:sldId r:id="x"/></p:sldIdLst></p:presentation>`), office.DefaultLimits(), office.ErrBroken},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d, err := office.Read(c.data, office.Detect(c.data), c.limits); !errors.Is(err, c.want) {
				t.Errorf("got %+v, %v; want %v", d, err, c.want)
			}
		})
	}
	if kind := office.Detect(pack(t, "a.txt", "text")); kind != "" {
		t.Errorf("a plain archive is %q", kind)
	}
}

// TestSmallFilesStaySmall holds that a file of some kilobytes cannot become a text of
// gigabytes: by cells that are repeated in every row that they span, by tables inside
// such cells, by one wide row, or by addresses far away.
func TestSmallFilesStaySmall(t *testing.T) {
	nested := "deep"
	for range 20 {
		nested = `<w:tbl><w:tr><w:tc><w:tcPr><w:vMerge w:val="restart"/></w:tcPr>` + nested + p("", "x") + `</w:tc><w:tc/></w:tr><w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr></w:tc><w:tc/></w:tr></w:tbl>`
	}
	merged := `<w:tbl><w:tr><w:tc><w:tcPr><w:vMerge w:val="restart"/></w:tcPr>` + p("", strings.Repeat("word ", 4000)) + `</w:tc><w:tc/></w:tr>` +
		strings.Repeat(`<w:tr><w:tc><w:tcPr><w:vMerge/></w:tcPr></w:tc><w:tc/></w:tr>`, 4000) + `</w:tbl>`
	wide := `<w:tbl><w:tr>` + strings.Repeat(`<w:tc><w:tcPr><w:gridSpan w:val="64"/></w:tcPr></w:tc>`, 200) + `</w:tr>` +
		strings.Repeat(`<w:tr><w:tc/><w:tc>`+p("", "x")+`</w:tc></w:tr>`, 4000) + `</w:tbl>`
	const space = `xmlns:hp="http://www.hancom.co.kr/hwpml/2011/paragraph"`
	spanned := `<hp:p><hp:run><hp:t>글</hp:t></hp:run></hp:p>`
	for range 4 {
		spanned = `<hp:p><hp:run><hp:tbl>` + strings.Repeat(`<hp:tr/>`, 32) + `<hp:tr><hp:tc>` + spanned + `<hp:cellAddr colAddr="0" rowAddr="0"/><hp:cellSpan rowSpan="33"/></hp:tc></hp:tr></hp:tbl></hp:run></hp:p>`
	}
	far := strings.Repeat(`<hp:p><hp:run><hp:tbl><hp:tr><hp:tc><hp:p><hp:run><hp:t>칸</hp:t></hp:run></hp:p><hp:cellAddr colAddr="60" rowAddr="19999"/></hp:tc></hp:tr></hp:tbl></hp:run></hp:p>`, 20)
	limits := office.DefaultLimits()
	limits.Bytes = 4 << 20
	for _, c := range []struct{ name, part, xml string }{
		{"tables inside repeated cells", "word/document.xml", wordBody(nested)},
		{"a long cell in every row", "word/document.xml", wordBody(merged)},
		{"a wide row above many", "word/document.xml", wordBody(wide)},
		{"spans inside spans", "Contents/section0.xml", `<s ` + space + `>` + spanned + `</s>`},
		{"rows far away", "Contents/section0.xml", `<s ` + space + `>` + far + `</s>`},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := pack(t, c.part, c.xml)
			d, err := office.Read(data, office.Detect(data), limits)
			if err != nil && !errors.Is(err, office.ErrTooLarge) || len(d.Markdown) > int(limits.Bytes) || err == nil && len(d.Markdown) > 4*len(c.xml) {
				t.Errorf("%d bytes of XML became %d of text, %v", len(c.xml), len(d.Markdown), err)
			}
		})
	}
}

func FuzzWord(f *testing.F) {
	f.Add(wordBody(p(`<w:numPr><w:ilvl w:val="1"/></w:numPr>`, "text") + "<w:tbl><w:tr><w:tc/></w:tr></w:tbl>"))
	f.Fuzz(func(t *testing.T, xml string) {
		_, err := office.Read(pack(t, "word/document.xml", xml), office.Word, office.Limits{Bytes: 1 << 20, Nodes: 10_000, Rows: 10, Cells: 10})
		if err != nil && !errors.Is(err, office.ErrBroken) && !errors.Is(err, office.ErrTooLarge) {
			t.Fatal(err)
		}
	})
}

func FuzzHangul(f *testing.F) {
	f.Add(`<s><p><run><t>x</t><tbl><tr><tc><cellAddr rowAddr="1" colAddr="2"/></tc></tr></tbl></run></p></s>`)
	f.Fuzz(func(t *testing.T, xml string) {
		_, err := office.Read(pack(t, "Contents/section0.xml", xml), office.Hangul, office.Limits{Bytes: 1 << 20, Nodes: 10_000, Rows: 10, Cells: 10})
		if err != nil && !errors.Is(err, office.ErrBroken) && !errors.Is(err, office.ErrTooLarge) {
			t.Fatal(err)
		}
	})
}
