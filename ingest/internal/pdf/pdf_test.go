package pdf_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ragd/ingest/internal/pdf"
	"ragd/ingest/internal/pdf/pdftest"
)

// reader keeps the compiled sandbox from run to run: compiling it takes seconds.
func reader(t testing.TB, change func(*pdf.Config)) *pdf.Reader {
	t.Helper()
	c := pdf.DefaultConfig()
	c.CacheDir = filepath.Join(os.TempDir(), "ragd-test-pdfium")
	if change != nil {
		change(&c)
	}
	r, err := pdf.NewReader(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

// body sets lines of running text, each 500 points wide or as long as it is.
func body(y float64, lines ...string) []pdftest.Line {
	var out []pdftest.Line
	for i, l := range lines {
		out = append(out, pdftest.Line{X: 50, Y: y - 14*float64(i), Size: 10, Text: l})
	}
	return out
}

func TestRead(t *testing.T) {
	r := reader(t, nil)
	full := func(s string) string { return s + strings.Repeat("·", max(0, 96-len([]rune(s)))) }
	for _, c := range []struct {
		name  string
		pages [][]pdftest.Line
		want  string
		at    []int
		blank []int
	}{
		{
			"headings by size, lines of a paragraph joined",
			[][]pdftest.Line{append(
				[]pdftest.Line{{X: 50, Y: 780, Size: 20, Text: "Boiler manual"}, {X: 50, Y: 740, Size: 14, Text: "1. 개요"}},
				body(700, full("The boiler is checked every Monday"), "by the crew. 압력은 2.4 bar다.", "- first item", "• second item")...,
			)},
			"# Boiler manual\n\n## 1. 개요\n\n" + full("The boiler is checked every Monday") + " by the crew. 압력은 2.4 bar다.\n\n- first item\n\n- second item",
			[]int{0},
			nil,
		},
		{
			"a paragraph over two pages, a page without text between others",
			[][]pdftest.Line{body(700, "The siren test is"), body(700, "on Thursday. Bring ear plugs."), nil, body(700, "New page.")},
			"The siren test is on Thursday. Bring ear plugs.\n\nNew page.",
			[]int{0, 18, 47, 49},
			[]int{3},
		},
		{
			"rows that end before the margin stay rows",
			[][]pdftest.Line{body(700, full("Bay list of the yard"), "C-1 12 May", "C-2 30 June")},
			full("Bay list of the yard") + " C-1 12 May\nC-2 30 June",
			[]int{0},
			nil,
		},
		{
			"a word divided at the end of its line, whose rest looks like an item",
			[][]pdftest.Line{body(700, "점검자는 밸브를 잠그고 압력을 확인한 뒤 ", "그 결과를 기록부에 적어 책임자에게 보고한", "다. 그 뒤에는 쉰다.", "나. 다음 항목")},
			"점검자는 밸브를 잠그고 압력을 확인한 뒤 그 결과를 기록부에 적어 책임자에게 보고한다. 그 뒤에는 쉰다.\n\n나. 다음 항목",
			[]int{0},
			nil,
		},
		{
			"Markdown's own marks are text",
			[][]pdftest.Line{append(body(700, "# not a heading"), body(600, "> no quote")...)},
			"\\# not a heading\n\n\\> no quote",
			[]int{0},
			nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := r.Read(t.Context(), pdftest.File("설명서", c.pages...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, d.Markdown); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.at, d.Pages); diff != "" {
				t.Errorf("pages (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.blank, d.Blank); diff != "" {
				t.Errorf("blank (-want +got):\n%s", diff)
			}
			if d.Title != "설명서" {
				t.Errorf("title %q", d.Title)
			}
		})
	}
}

func TestRunningLinesAreLeftOutAndTold(t *testing.T) {
	var pages [][]pdftest.Line
	for i := range 5 {
		text := append(body(600, fmt.Sprintf("Text number %d stays.", i)), body(400, "The same line on every page stays too.")...)
		pages = append(pages, append(text, pdftest.Line{X: 50, Y: 820, Size: 10, Text: "사내 문서"}, pdftest.Line{X: 300, Y: 20, Size: 10, Text: fmt.Sprintf("- %d -", i+1)}))
	}
	d, err := reader(t, nil).Read(t.Context(), pdftest.File("", pages...))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(d.Markdown, "사내 문서") || strings.Count(d.Markdown, "stays too") != 5 || !strings.Contains(d.Markdown, "Text number 4") {
		t.Errorf("text:\n%s", d.Markdown)
	}
	if diff := cmp.Diff([]string{"사내 문서", "- 1 -"}, d.Repeated); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

func TestErrors(t *testing.T) {
	r := reader(t, func(c *pdf.Config) { c.MaxPages, c.MaxChars = 3, 100 })
	whole := pdftest.File("", body(700, "text"))
	page := body(700, "text")
	for _, c := range []struct {
		name string
		data []byte
		want error
	}{
		{"no text", pdftest.File("", nil, nil), pdf.ErrNoText},
		{"too many pages", pdftest.File("", page, page, page, page), pdf.ErrTooLong},
		{"too many characters", pdftest.File("", body(700, strings.Repeat("x", 60)), body(700, strings.Repeat("x", 60))), pdf.ErrTooLong},
		{"cut off", whole[:200], pdf.ErrBroken},
		{"nothing", nil, pdf.ErrBroken},
		{"no PDF", []byte("%PDF-1.7\nhello"), pdf.ErrBroken},
	} {
		t.Run(c.name, func(t *testing.T) {
			if d, err := r.Read(t.Context(), c.data); !errors.Is(err, c.want) {
				t.Errorf("got %+v, %v; want %v", d, err, c.want)
			}
		})
	}
	if _, err := r.Read(t.Context(), whole); err != nil {
		t.Errorf("a good file after the bad ones: %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Read(gone, whole); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// FuzzRead feeds damaged files: they end with text or an error of the package.
func FuzzRead(f *testing.F) {
	r := reader(f, nil)
	f.Add(pdftest.File("t", body(700, "text", "더 있는 글")))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := r.Read(t.Context(), data)
		known := errors.Is(err, pdf.ErrBroken) || errors.Is(err, pdf.ErrNoText) || errors.Is(err, pdf.ErrTooLong) || errors.Is(err, pdf.ErrPassword)
		if err != nil && !known {
			t.Fatal(err)
		}
		for _, p := range d.Pages {
			if p > len(d.Markdown) {
				t.Fatalf("page at %d of %d", p, len(d.Markdown))
			}
		}
	})
}
