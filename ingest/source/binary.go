package source

import (
	"bytes"
	"context"
	"path"
	"regexp"
	"strings"

	"ragd/ingest"
	"ragd/ingest/internal/office"
)

// pdfHead is how far into a file its PDF mark may stand (ISO 32000-1, note to
// 7.5.2: readers accept it within the first 1,024 bytes).
const pdfHead = 1024

// binaryFormat tells PDF and office documents by their content, whatever they
// are named.
func binaryFormat(data []byte) (format, bool) {
	head := data[:min(len(data), pdfHead)]
	if bytes.HasPrefix(data, []byte("PK\x03\x04")) {
		kind := office.Detect(data)
		return format{media: string(kind), binary: officeReader(kind)}, kind != ""
	}
	if i := bytes.Index(head, []byte("%PDF-")); i == 0 || i > 0 && controlShare(head) > controlsUnnamed {
		return format{media: "application/pdf", binary: extractPDF}, true
	}
	return format{}, false
}

func extractPDF(ctx context.Context, s *Source, d *ingest.Document, data []byte) error {
	p, err := s.pdf.Read(ctx, data)
	if err != nil {
		return err
	}
	fill(d, p.Title, p.Author, p.Markdown, p.Pages)
	if len(p.Blank) > 0 {
		warn(d, "%d of %d pages have no text, the first is page %d (images need OCR first)", len(p.Blank), len(p.Pages), p.Blank[0])
	}
	for _, line := range p.Repeated[:min(len(p.Repeated), 4)] {
		warn(d, "running line left out: %q", clip(line))
	}
	return nil
}

func officeReader(kind office.Kind) func(context.Context, *Source, *ingest.Document, []byte) error {
	return func(_ context.Context, s *Source, d *ingest.Document, data []byte) error {
		o, err := office.Read(data, kind, s.config.Office)
		if err != nil {
			return err
		}
		fill(d, o.Title, o.Author, o.Markdown, o.Pages)
		return nil
	}
}

// fill takes over what a reader found. Its text has no zero bytes and is valid
// UTF-8; offsets of pages stay right because each zero byte becomes one space.
func fill(d *ingest.Document, title, author, text string, pages []int) {
	d.Text, d.Markdown, d.Pages, d.Charset = strings.ReplaceAll(text, "\x00", " "), true, pages, "utf-8"
	if d.Title = firstHeading(d.Text); d.Title == "" || title != "" && !leftover(title) {
		d.Title = title
	}
	if leftover(d.Title) {
		d.Title = ""
	}
	if author != "" {
		d.Metadata = map[string]any{"author": clip(author)}
	}
}

// programTitle is a title that a program wrote, not a person.
var programTitle = regexp.MustCompile(`(?i)^(microsoft (word|powerpoint|excel) - |untitled|제목 ?없음|문서 ?\d+$|document ?\d*$|powerpoint)`)

func leftover(title string) bool {
	switch strings.ToLower(path.Ext(title)) {
	case ".doc", ".docx", ".dvi", ".hwp", ".hwpx", ".indd", ".odt", ".pdf", ".ppt", ".pptx", ".tex", ".txt", ".xls", ".xlsx":
		return true
	}
	return programTitle.MatchString(title)
}
