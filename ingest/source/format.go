package source

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/gabriel-vasile/mimetype"

	"ragd/ingest"
)

// format is how one kind of file is read: text is decoded first and then
// extracted, a binary format is read from its bytes.
type format struct {
	media   string
	extract func(d *ingest.Document) error
	html    bool // the charset may be declared inside
	binary  func(ctx context.Context, s *Source, d *ingest.Document, data []byte) error
}

var (
	markdownFormat = format{media: "text/markdown", extract: extractMarkdown}
	htmlFormat     = format{media: "text/html", extract: extractHTML, html: true}
	csvFormat      = format{media: "text/csv", extract: extractCSV}
	plainFormat    = format{media: "text/plain", extract: extractPlain}
	jsonFormat     = format{media: "text/plain", extract: extractJSON}
)

// byExtension holds the extensions whose reading is settled by the name.
var byExtension = map[string]format{
	".md": markdownFormat, ".markdown": markdownFormat, ".mdown": markdownFormat, ".mkd": markdownFormat, ".mdx": markdownFormat,
	".html": htmlFormat, ".htm": htmlFormat, ".xhtml": htmlFormat,
	".csv": csvFormat, ".tsv": csvFormat,
	".txt": plainFormat, ".text": plainFormat, ".log": plainFormat, ".rst": plainFormat, ".adoc": plainFormat, ".org": plainFormat,
	".json": jsonFormat, ".jsonl": jsonFormat, ".yaml": plainFormat, ".yml": plainFormat, ".toml": plainFormat, ".ini": plainFormat, ".xml": plainFormat,
	".go": plainFormat, ".py": plainFormat, ".js": plainFormat, ".ts": plainFormat, ".c": plainFormat, ".h": plainFormat, ".java": plainFormat, ".rs": plainFormat, ".sh": plainFormat, ".sql": plainFormat,
}

// Shares of control bytes that a text may hold: a stray zero byte must not
// make a named text binary (a random file has 28 of 256 bytes, 11 %).
const (
	controlsNamed   = 0.30
	controlsUnnamed = 0.02
	sniffBytes      = 64 << 10
)

// detect chooses the format by name and content. Content that is plainly
// something else (an image named .txt) is refused.
func detect(name string, data []byte) (format, error) {
	head := data[:min(len(data), sniffBytes)]
	named, known := byExtension[strings.ToLower(path.Ext(name))]
	if utf16Like(head) {
		if !known {
			named = plainFormat
		}
		return named, nil
	}
	if f, ok := binaryFormat(data); ok {
		return f, nil
	}
	media := mimetype.Detect(head)
	share := controlShare(head)
	if container(media) || share > controlsNamed {
		return format{}, fmt.Errorf("%w: %s", ingest.ErrUnsupported, mediaName(media))
	}
	if known {
		if share > 0 && !textual(media) && !media.Is("application/octet-stream") {
			return format{}, fmt.Errorf("%w: %s", ingest.ErrUnsupported, mediaName(media))
		}
		return named, nil
	}
	if media.Is("text/html") {
		return htmlFormat, nil
	}
	if textual(media) || share == 0 && utf8.Valid(data) || media.Is("application/octet-stream") && share <= controlsUnnamed {
		if media.Is("application/json") || media.Is("application/x-ndjson") {
			return format{media: mediaName(media), extract: extractJSON}, nil
		}
		return format{media: textMedia(media), extract: extractPlain}, nil
	}
	return format{}, fmt.Errorf("%w: %s", ingest.ErrUnsupported, mediaName(media))
}

// container reports formats that may look like text byte by byte and are not
// meant to be read as such.
func container(m *mimetype.MIME) bool {
	for _, t := range []string{"text/rtf", "application/postscript", "application/zip", "application/x-ole-storage"} {
		for p := m; p != nil; p = p.Parent() {
			if p.Is(t) {
				return true
			}
		}
	}
	return false
}

// textual reports text/plain and everything mimetype derives from it (JSON,
// XML, source code).
func textual(m *mimetype.MIME) bool {
	for p := m; p != nil; p = p.Parent() {
		if p.Is("text/plain") {
			return true
		}
	}
	return false
}

func mediaName(m *mimetype.MIME) string {
	name, _, _ := strings.Cut(m.String(), ";")
	return name
}

func textMedia(m *mimetype.MIME) string {
	if textual(m) {
		return mediaName(m)
	}
	return "text/plain"
}

// controlShare is the share of bytes that no text needs: C0 without tab, line
// feed, form feed, carriage return and escape, and DEL.
func controlShare(b []byte) float64 {
	if len(b) == 0 {
		return 0
	}
	n := 0
	for _, c := range b {
		if c < 0x20 && !bytes.ContainsRune([]byte("\t\n\f\r\x1b"), rune(c)) || c == 0x7f {
			n++
		}
	}
	return float64(n) / float64(len(b))
}
