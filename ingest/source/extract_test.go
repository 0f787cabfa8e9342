package source_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"ragd/ingest"
	"ragd/ingest/internal/pdf"
)

func extract(t testing.TB, name string, data []byte) (ingest.Document, error) {
	t.Helper()
	return newSource(t, 1<<20).Extract(t.Context(), ingest.Raw{File: ingest.File{Path: name}, Bytes: data})
}

func mustExtract(t testing.TB, name string, data []byte) ingest.Document {
	t.Helper()
	d, err := extract(t, name, data)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return d
}

func encode(t testing.TB, charset, text string) []byte {
	t.Helper()
	var b []byte
	var err error
	switch charset {
	case "euc-kr":
		b, err = korean.EUCKR.NewEncoder().Bytes([]byte(text))
	case "utf-16le":
		b, err = unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM).NewEncoder().Bytes([]byte(text))
	case "utf-16be":
		b, err = unicode.UTF16(unicode.BigEndian, unicode.IgnoreBOM).NewEncoder().Bytes([]byte(text))
	case "utf-16le-bom":
		b, err = unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewEncoder().Bytes([]byte(text))
	case "utf-16be-bom":
		b, err = unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewEncoder().Bytes([]byte(text))
	case "windows-1252":
		b, err = charmap.Windows1252.NewEncoder().Bytes([]byte(text))
	case "utf-8-bom":
		b = []byte("\xef\xbb\xbf" + text)
	default:
		b = []byte(text)
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestCharsets holds OB-02: what comes out is what was saved, and a guess is
// said to be one.
func TestCharsets(t *testing.T) {
	const (
		long  = "보일러실 점검 기록\n\n1. 압력계 바늘은 초록 구간에 있어야 한다.\n2. 열쇠 담당자는 정미숙 과장이다.\n"
		rare  = "희귀 글자 표: 뷁, 똠, 햏, 쌰 - 이 글자들도 그대로 남는다.\n"
		short = "암호는 은빛여우다.\n"
		west  = "Le café fermé à l'été: « déjà vu » – 5 €, naïve Frau Müller aß Brötchen.\n"
	)
	for _, c := range []struct {
		text, saved, want string
		guessed           bool
	}{
		{long, "euc-kr", "euc-kr", true},
		{rare, "euc-kr", "cp949", true},
		{short, "euc-kr", "euc-kr", true},
		{"창고\n", "euc-kr", "euc-kr", true},
		{long, "utf-8", "utf-8", false},
		{short, "utf-8", "utf-8", false},
		{west, "utf-8", "utf-8", false},
		{"é", "utf-8", "utf-8", false},
		{"Ưȭ", "utf-8", "utf-8", true},
		{long, "utf-8-bom", "utf-8", false},
		{long, "utf-16le", "utf-16le", true},
		{long, "utf-16be", "utf-16be", true},
		{west, "utf-16le", "utf-16le", true},
		{"plain words\n", "utf-16be", "utf-16be", true},
		{long, "utf-16le-bom", "utf-16le", false},
		{short, "utf-16be-bom", "utf-16be", false},
		{west, "windows-1252", "windows-1252", true},
		{"저장 위치는 여기이다. 열쇠 둘 하나\n", "utf-16le", "utf-16le", true},
		{"```sh\nls\n```\n", "utf-16be", "utf-16be", true},
		{"코드 블록\n", "euc-kr", "euc-kr", true},
		{"## 확장: `models` 호환\n", "euc-kr", "euc-kr", true},
		{"두어도", "euc-kr", "euc-kr", true},
		{"ASCII only.\n", "utf-8", "utf-8", false},
		{"Ünï", "utf-8", "utf-8", false},
	} {
		d, err := extract(t, "memo.txt", encode(t, c.saved, c.text))
		if err != nil || d.Text != c.text || d.Charset != c.want || d.CharsetGuessed != c.guessed {
			t.Errorf("%q saved as %s: %q, %s, guessed %v, %v", c.text, c.saved, d.Text, d.Charset, d.CharsetGuessed, err)
		}
		if d.CharsetGuessed != (len(d.Warnings) > 0) {
			t.Errorf("%q saved as %s: warnings %q", c.text, c.saved, d.Warnings)
		}
	}
}

// TestKoreanIsNeverWrongInSilence saves random Korean prose in the encodings of
// old and new editors: what is read is the text, or something was said.
func TestKoreanIsNeverWrongInSilence(t *testing.T) {
	words := rapid.SampledFrom([]string{
		"열쇠", "서랍에", "코드", "블록", "프롬프트", "호환", "키트", "첫", "큰", "두어도", "인사말", "있다.", "뷁을 보았다", "햏자는", "창고는", "3번", "ABC-12", "`x`", "(예:", "둔", "\n", "정비사", "링크",
	})
	rapid.Check(t, func(r *rapid.T) {
		text := "이 글은 " + strings.Join(rapid.SliceOfN(words, 1, 30).Draw(r, "words"), " ") + "\n"
		for _, charset := range []string{"utf-8", "utf-8-bom", "euc-kr", "utf-16le", "utf-16be", "utf-16le-bom"} {
			d, err := extract(t, "memo.txt", encode(t, charset, text))
			if err == nil && d.Text != text && len(d.Warnings) == 0 {
				t.Fatalf("%q saved as %s became %q", text, charset, d.Text)
			}
			if !strings.HasPrefix(charset, "utf-16") && (err != nil || d.Text != text) {
				t.Fatalf("%q saved as %s: %q, %v", text, charset, d.Text, err)
			}
		}
	})
}

func TestUnknownCharsetIsReported(t *testing.T) {
	for name, data := range map[string]string{
		"gbk":       "\xd5\xe2\xca\xc7\xd2\xbb\xb8\xf6\xd6\xd0\xce\xc4\xce\xc4\xbc\xfe\xa3\xac\xb2\xbb\xca\xc7\xba\xab\xce\xc4\xa1\xa3",
		"shift-jis": "\x82\xb1\x82\xea\x82\xcd\x93\xfa\x96{\x8c\xea\x82\xcc\x83t\x83@\x83C\x83\x8b\x82\xc5\x82\xb7\x81B",
		"noise":     "\x81\x20\xff\x8d\x90\x9d\x81\xfe\xff\xfe\xfd",
	} {
		d, err := extract(t, "memo.txt", []byte(data))
		if !errors.Is(err, ingest.ErrCharset) {
			t.Errorf("%s: %q, %v", name, d.Text, err)
		}
	}
}

// TestDamagedText holds OB-01: both sides of a broken byte stay, and it is said.
func TestDamagedText(t *testing.T) {
	// A log in CP949 that was cut inside a character, or holds a stray byte.
	line := strings.Repeat("펌프 온도가 기준을 넘어 담당자가 확인했다. ", 3) + "압력은 2.4 bar로 유지되고 있다.\n"
	korean := string(encode(t, "euc-kr", line+line))
	for _, c := range []struct{ name, data, want, warning string }{
		{"a.txt", "Before: \x00\x00A\x00B after.\n", "Before: A B after.\n", "3 zero byte(s) replaced by spaces"},
		{"a.md", "# T\x00itle\n\n```\n\x00raw\n```\n", "# T itle\n\n```\n raw\n```\n", "2 zero byte(s) replaced by spaces"},
		{"a.txt", "The spare key hangs on hook \xff\xfe\xc3( and a lone byte \x80 stands before LILAC, the end of the line.\n", "The spare key hangs on hook \ufffd( and a lone byte \ufffd stands before LILAC, the end of the line.\n", "2 broken utf-8 sequence(s) replaced by U+FFFD"},
		{"a.txt", "열쇠는 \xec\x97 서랍에 있다.\n", "열쇠는 \ufffd 서랍에 있다.\n", "1 broken utf-8 sequence(s) replaced by U+FFFD"},
		{"a.txt", "\xef\xbb\xbfone\r\ntwo\rthree\n", "one\ntwo\nthree\n", ""},
		{"a.txt", "once \ufffd damaged\n", "once \ufffd damaged\n", "1 U+FFFD already in the file: its text was damaged earlier"},
		{"a.log", korean[:len(korean)/2] + "\xff" + korean[len(korean)/2:], line + "\ufffd" + line, "encoding guessed: euc-kr; 1 broken euc-kr sequence(s) replaced by U+FFFD"},
		{"a.log", korean[:len(korean)-3], line + line[:len(line)-len("다.\n")] + "\ufffd", "encoding guessed: euc-kr; 1 broken euc-kr sequence(s) replaced by U+FFFD"},
		{"a.txt", string(encode(t, "utf-16le-bom", "The spare key hangs here.\n")) + "x", "The spare key hangs here.\n\ufffd", "1 broken utf-16le sequence(s) replaced by U+FFFD"},
		{"noext", "Plain words \x00 without an extension, long enough to be judged as text by its content alone.", "Plain words without an extension, long enough to be judged as text by its content alone.", "1 zero byte(s) replaced by spaces"},
	} {
		d := mustExtract(t, c.name, []byte(c.data))
		if d.Text != c.want {
			t.Errorf("%q: text %q", c.data, d.Text)
		}
		if got := strings.Join(d.Warnings, "; "); got != c.warning {
			t.Errorf("%q: warnings %q", c.data, got)
		}
	}
}

func TestFormats(t *testing.T) {
	for _, c := range []struct {
		name, data, media string
		err               error
	}{
		{"a.md", "# Title\n\nText", "text/markdown", nil},
		{"BMW.txt", "BM is how a bitmap starts, and this sentence.", "text/plain", nil},
		{"data.json", `{"a": [1, 2]}`, "text/plain", nil},
		{"main.go", "package main", "text/plain", nil},
		{"Makefile", "all:\n\techo\n", "text/plain", nil},
		{"page", "<!DOCTYPE html><html><body><p>Hello</p></body></html>", "text/html", nil},
		{"a.pdf", "%PDF-1.7\n1 0 obj\n", "application/pdf", pdf.ErrBroken},
		{"really.txt", "%PDF-1.7\n1 0 obj\n", "application/pdf", pdf.ErrBroken},
		{"about.txt", "A file that starts with %PDF- is a PDF file.", "text/plain", nil},
		{"a.docx", "PK\x03\x04\x14\x00\x06\x00word/document.xml", "", ingest.ErrUnsupported},
		{"image.md", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01", "", ingest.ErrUnsupported},
		{"blob.bin", "\x01\x02\x03\x04\x05\x06\x07\x08abc", "", ingest.ErrUnsupported},
		{"a.txt", "", "", ingest.ErrEmpty},
		{"a.txt", " \t\r\n", "", ingest.ErrEmpty},
		{"a.txt", "\xef\xbb\xbf", "", ingest.ErrEmpty},
		{"a.txt", "\u200b\u00a0\u3000\ufeff\u3164", "", ingest.ErrEmpty},
		{"a.html", "<p> </p><!-- note --><script>x()</script>", "", ingest.ErrEmpty},
		{"a.md", "---\ntitle: only\n---\n", "", ingest.ErrEmpty},
	} {
		d, err := extract(t, c.name, []byte(c.data))
		if !errors.Is(err, c.err) || err == nil && d.Type != c.media {
			t.Errorf("%s %.20q: %s, %v", c.name, c.data, d.Type, err)
		}
	}
}

// TestJSON: what programs escape is what people search for.
func TestJSON(t *testing.T) {
	for _, c := range []struct{ name, data, want string }{
		{"a.json", `{"\uc5f4\uc1e0": "\uc11c\ub78d 7", "n": 1}`, `{"열쇠": "서랍 7", "n": 1}`},
		{"a.jsonl", `"\ud83d\ude80 caf\u00e9"` + "\n", `"🚀 café"` + "\n"},
		{"a.json", `"line\nend \u0022 \u0007 \ud83d \ud83dx \u20 \\uc5f4 \\\uc5f4 \u200b \ufffd"`, `"line\nend \u0022 \u0007 \ud83d \ud83dx \u20 \\uc5f4 \\열 \u200b \ufffd"`},
		{"a.json", `"\u1112\u1161\u11ab"`, `"한"`},
		{"a.json", `"\u12`, `"\u12`},
		{"a.json", `"x\`, `"x\`},
		{"noext", `{"key": "\uc5f4\uc1e0"}`, `{"key": "열쇠"}`},
		{"a.py", `x = "\uc5f4"`, `x = "\uc5f4"`},
	} {
		if d := mustExtract(t, c.name, []byte(c.data)); d.Text != c.want {
			t.Errorf("%s %s became %s", c.name, c.data, d.Text)
		}
	}
}

// TestDecomposedHangul: file names and texts from macOS.
func TestDecomposedHangul(t *testing.T) {
	d := mustExtract(t, norm.NFD.String("자료/회의록.txt"), []byte(norm.NFD.String("예비 열쇠는 7번 칸에 있다.\n")))
	if d.Title != "회의록.txt" || d.Text != "예비 열쇠는 7번 칸에 있다.\n" || d.Path != norm.NFD.String("자료/회의록.txt") {
		t.Errorf("title %+q, text %+q, path %+q", d.Title, d.Text, d.Path)
	}
}

// TestFrontMatter holds OB-04.
func TestFrontMatter(t *testing.T) {
	for _, c := range []struct {
		name, data, title, text string
		metadata                map[string]any
	}{
		{"normal", "---\ntitle: Cold room\ntags: [a, 2]\nowner: {team: blue}\nyear: 2025\n---\n# Steps\n\nGo.\n", "Cold room", "# Steps\n\nGo.\n", map[string]any{"title": "Cold room", "tags": []string{"a", "2"}, "owner.team": "blue", "year": "2025"}},
		{"dots", "---\nowner: x\n...\nBody.\n", "m.md", "Body.\n", map[string]any{"owner": "x"}},
		{"bom and crlf", "\ufeff---\r\ntitle: W\r\n---\r\n\r\n# D\r\n", "W", "\n# D\n", map[string]any{"title": "W"}},
		{"rule in prose", "# H\n\n---\n\nkey: is prose\n\n---\n", "H", "# H\n\n---\n\nkey: is prose\n\n---\n", nil},
		{"rules first", "---\n\nProse: between rules.\n\n---\n", "m.md", "---\n\nProse: between rules.\n\n---\n", nil},
		{"no key", "---\nJust a line.\n---\nText\n", "Just a line.", "---\nJust a line.\n---\nText\n", nil},
		{"unclosed", "---\ntitle: Open\n14 tonnes.\n\n# S\n", "S", "---\ntitle: Open\n14 tonnes.\n\n# S\n", nil},
		{"not at the top", "\n---\na: b\n---\nT\n", "a: b", "\n---\na: b\n---\nT\n", nil},
	} {
		d := mustExtract(t, "m.md", []byte(c.data))
		if d.Title != c.title || d.Text != c.text {
			t.Errorf("%s: title %q, text %q", c.name, d.Title, d.Text)
		}
		if diff := cmp.Diff(c.metadata, d.Metadata); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	d := mustExtract(t, "m.md", []byte("---\ntitle: [broken\n---\nThe text stays.\n"))
	if d.Text != "The text stays.\n" || d.Metadata != nil || len(d.Warnings) != 1 || !strings.Contains(d.Warnings[0], "front matter") {
		t.Errorf("broken YAML: %+v", d)
	}
}

// TestFrontMatterIsBounded holds that no YAML costs more than its metadata.
func TestFrontMatterIsBounded(t *testing.T) {
	var aliases strings.Builder
	aliases.WriteString("a0: &a0 {x: {}}\n")
	for i := range 40 {
		fmt.Fprintf(&aliases, "a%d: &a%d {x: *a%d, y: *a%d}\n", i+1, i+1, i, i)
	}
	var many strings.Builder
	for i := range 300 {
		fmt.Fprintf(&many, "key%d: v\n", i)
	}
	for name, front := range map[string]string{
		"aliases": aliases.String(), "many": many.String(), "open": "a: " + strings.Repeat("[", 8000) + "\n", "long": "a: " + strings.Repeat("x", 9000) + "\n",
	} {
		d := mustExtract(t, "m.md", []byte("---\n"+front+"---\nBody.\n"))
		if d.Text != "Body.\n" || len(d.Metadata) > 64 || name != "long" && len(d.Warnings) == 0 {
			t.Errorf("%s: %d keys, warnings %q, text %.40q", name, len(d.Metadata), d.Warnings, d.Text)
		}
	}
	long := "---\na: b\n" + strings.Repeat("c: d\n", 9000) + "---\nBody.\n"
	if d := mustExtract(t, "m.md", []byte(long)); d.Text != long {
		t.Error("a block beyond the bound was taken for front matter")
	}
}

func TestHTML(t *testing.T) {
	page := `<html><head><title>Pump &amp; valve</title><style>p{}</style></head><body><!-- secret --><h1>Pumps</h1>
<p>The <b>pump</b> is blue. See PUMP_MAX_RPM.</p><script>var x = "hidden"</script><template>no</template><p hidden>no</p>
<ul><li>one</li><li>two</li></ul><table><tr><th>part</th><th>n</th></tr><tr><td>seal</td><td>4</td></tr></table></body></html>`
	d := mustExtract(t, "p.html", []byte(page))
	if d.Title != "Pump & valve" || !d.Markdown {
		t.Errorf("title %q", d.Title)
	}
	for _, want := range []string{"# Pumps\n", "The **pump** is blue. See PUMP_MAX_RPM.", "- one\n", "| part | n |\n|---|---|\n| seal | 4 |"} {
		if !strings.Contains(d.Text, want) {
			t.Errorf("%q is not in %q", want, d.Text)
		}
	}
	for _, gone := range []string{"secret", "hidden", "no\n", "p{}"} {
		if strings.Contains(d.Text, gone) {
			t.Errorf("%q is in %q", gone, d.Text)
		}
	}
	declared := encode(t, "euc-kr", `<html><head><meta charset="euc-kr"><title>창고</title></head><body><p>열쇠는 서랍에</p></body></html>`)
	if d := mustExtract(t, "k.html", declared); d.Title != "창고" || d.Charset != "euc-kr" || d.CharsetGuessed {
		t.Errorf("declared charset: %+v", d)
	}
	lying := []byte(`<html><head><meta charset="iso-8859-1"></head><body><p>열쇠는 서랍에</p></body></html>`)
	if d := mustExtract(t, "k.html", lying); !strings.Contains(d.Text, "열쇠는 서랍에") {
		t.Errorf("UTF-8 was decoded again: %q", d.Text)
	}
	if _, err := extract(t, "deep.html", []byte(strings.Repeat("<div>", 5000)+"x")); err == nil {
		t.Error("nesting of 5,000 elements was read")
	}
}

// TestHTMLIsBounded holds that a small page cannot become a large document.
func TestHTMLIsBounded(t *testing.T) {
	for _, page := range []string{
		"<table><tr>" + strings.Repeat("<td>x", 400) + strings.Repeat("<tr><td>y", 400),
		"<table>" + strings.Repeat("<tr><td colspan=1000>x", 200), "<table><tr>" + strings.Repeat("<td rowspan=5000>x", 100),
		strings.Repeat("<blockquote>", 400) + strings.Repeat("<p>x</p>", 300), strings.Repeat("<ul><li>", 200) + strings.Repeat("<p>x</p>", 300),
	} {
		if d := mustExtract(t, "p.html", []byte(page)); len(d.Text) > 20*len(page) {
			t.Errorf("%.30q…: %d bytes became %d", page, len(page), len(d.Text))
		}
	}
}

// TestCSV holds OB-03.
func TestCSV(t *testing.T) {
	d := mustExtract(t, "p.csv", []byte("\ufeff\"부품, 크기\",선반\r\n\"볼트, M8\",\"둘째 줄\r\n개봉 금지\"\r\n\"띠 \"\"가\"\"\",\r\n"))
	want := "| 부품, 크기 | 선반 |\n| --- | --- |\n| 볼트, M8 | 둘째 줄 개봉 금지 |\n| 띠 \"가\" |  |\n"
	if d.Text != want || !d.Markdown {
		t.Errorf("got %q", d.Text)
	}
	if d := mustExtract(t, "s.csv", []byte("name;qty\nvalve|a;4\n")); d.Text != "| name | qty |\n| --- | --- |\n| valve\\|a | 4 |\n" {
		t.Errorf("semicolons: %q", d.Text)
	}
	for _, plain := range []string{"one column\nonly\n", "a,b\n1,2,3\n", "a,\"b\n", "a,b\n"} {
		if d := mustExtract(t, "x.csv", []byte(plain)); d.Text != plain || d.Markdown {
			t.Errorf("%q became %q", plain, d.Text)
		}
	}
}

// checkDocument holds what is true of any text that was read.
func checkDocument(t *testing.T, d ingest.Document) {
	t.Helper()
	if !utf8.ValidString(d.Text) || strings.ContainsAny(d.Text, "\x00\r") || strings.HasPrefix(d.Text, "\ufeff") || !ingest.HasText(d.Text) {
		t.Fatalf("unclean text %q", d.Text)
	}
	if !utf8.ValidString(d.Title) || strings.ContainsRune(d.Title, 0) || d.Title == "" {
		t.Fatalf("unclean title %q", d.Title)
	}
	for k, v := range d.Metadata {
		if s := fmt.Sprint(k, v); !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
			t.Fatalf("unclean metadata %q", s)
		}
	}
	if strings.ContainsRune(d.Text, utf8.RuneError) && len(d.Warnings) == 0 {
		t.Fatalf("U+FFFD without a word: %q", d.Text)
	}
}

// checkExtract reads data under a name and holds what is true of any result.
func checkExtract(t *testing.T, name string, data []byte) ingest.Document {
	d, err := extract(t, name, data)
	if err == nil {
		checkDocument(t, d)
	}
	return d
}

func FuzzCharset(f *testing.F) {
	for _, charset := range []string{"utf-8", "euc-kr", "utf-16le", "utf-16be", "utf-16le-bom", "utf-8-bom"} {
		f.Add(encode(f, charset, "열쇠는 서랍에 있다. Key 12\r\n"))
	}
	f.Add([]byte("caf\xe9 \x00 \xff\xfe"))
	f.Fuzz(func(t *testing.T, data []byte) {
		d := checkExtract(t, "a.txt", data)
		if utf8.Valid(data) && !strings.ContainsRune(string(data), 0) && d.Charset != "" && d.Charset != "utf-8" {
			t.Fatalf("valid UTF-8 decoded as %s", d.Charset)
		}
	})
}

func FuzzFrontMatter(f *testing.F) {
	f.Add("---\ntitle: x\ntags: [1, {b: c}]\n---\n# T\n")
	f.Add("---\n\"a\\0b\": \"c\\0d\"\n---\nbody")
	f.Add("---\na: &a [*a]\n...\nbody")
	f.Add("\ufeff---\r\nkey: |\r\n  text\r\n---\r\nbody")
	f.Fuzz(func(t *testing.T, text string) {
		if d := checkExtract(t, "a.md", []byte(text)); !strings.HasPrefix(text, "---") && d.Metadata != nil && !strings.HasPrefix(text, "\ufeff") && utf8.ValidString(text) && !strings.ContainsRune(text, 0) {
			t.Fatalf("metadata without front matter: %v", d.Metadata)
		}
	})
}

func FuzzHTML(f *testing.F) {
	f.Add([]byte("<meta charset=euc-kr><table><tr><td>x\xb0\xa1<td>y</table><ul><li>a<li>b"))
	f.Add([]byte("<title>T</title><pre><code class=language-go>x := 1</code></pre><!-- c --><script>z</script>"))
	f.Fuzz(func(t *testing.T, data []byte) { checkExtract(t, "a.html", data) })
}

func FuzzCSV(f *testing.F) {
	f.Add([]byte("a;b\n\"1\n2\";3"))
	f.Add([]byte("x,\"y, z\"\r\n1,|\r\n"))
	f.Fuzz(func(t *testing.T, data []byte) { checkExtract(t, "a.csv", data) })
}

func FuzzContent(f *testing.F) {
	f.Add([]byte("%PDF-1.7"))
	f.Add([]byte("#!/bin/sh\necho x\n"))
	f.Add([]byte("\xff\xfeA\x00"))
	f.Fuzz(func(t *testing.T, data []byte) { checkExtract(t, "noext", data) })
}
