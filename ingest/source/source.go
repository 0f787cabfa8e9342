// Package source finds files and turns them into documents: clean UTF-8 text,
// Markdown where the format has structure, with the encoding, the metadata and
// whatever was changed on the way.
//
// # Stored paths
//
// A document is named, slash separated, from the given folder on, or from the
// folder that holds the given file: the root "notes" (or "./notes", or
// "/srv/notes") gives "notes/a/b.md", the root "notes/c.md" gives
// "notes/c.md", the root "notes/a/b.md" gives "a/b.md". So a later run over the same root gives the
// same names wherever it is started, and naming the files of a folder one by one
// gives the same names as naming the folder. The folder's name is the one that
// was typed, even when that is a symbolic link. Two folders of the same name
// share one name space: give them different collections.
//
// # What is read
//
// Hidden files and folders (a name that starts with a dot) below a root are
// passed over and not counted. Symbolic links below a root are listed and never
// followed, so a walk cannot leave its root or run in a circle; a root that is
// itself a link is followed. Pipes, sockets and devices are never opened.
package source

import (
	"context"
	"fmt"
	"path"
	"strings"

	"ragd/ingest"
	"ragd/ingest/internal/office"
	"ragd/ingest/internal/pdf"
)

// Config bounds what is read.
type Config struct {
	// MaxBytes is the largest file that is read; larger ones fail with
	// ingest.ErrTooLarge.
	MaxBytes int64
	// PDF and Office bound what is unpacked from a file of theirs.
	PDF    pdf.Config
	Office office.Limits
}

// DefaultConfig reads files of up to 64 MiB.
func DefaultConfig() Config {
	return Config{MaxBytes: 64 << 20, PDF: pdf.DefaultConfig(), Office: office.DefaultLimits()}
}

// Source reads files of the local file system. It is safe for concurrent use.
type Source struct {
	config Config
	pdf    *pdf.Reader
}

var _ ingest.Source = (*Source)(nil)

// New returns a Source, or an error when a bound makes no sense. Close frees what
// reading PDF files took.
func New(c Config) (*Source, error) {
	if c.MaxBytes <= 0 {
		return nil, fmt.Errorf("source: max bytes must be positive, got %d", c.MaxBytes)
	}
	r, err := pdf.NewReader(c.PDF)
	if err != nil {
		return nil, fmt.Errorf("source: %w", err)
	}
	return &Source{config: c, pdf: r}, nil
}

// Close ends the reading of PDF files; the Source is not used after it.
func (s *Source) Close() error { return s.pdf.Close() }

// Extract turns a file's bytes into a document. It returns ingest.ErrEmpty,
// ingest.ErrUnsupported or ingest.ErrCharset (wrapped) when there is no text to
// be had; broken front matter or markup never fails a file.
func (s *Source) Extract(ctx context.Context, r ingest.Raw) (ingest.Document, error) {
	d := ingest.Document{Path: r.File.Path, Hash: r.Hash, Bytes: int64(len(r.Bytes)), Modified: r.File.Modified}
	format, err := detect(r.File.Path, r.Bytes)
	if err != nil {
		return d, err
	}
	d.Type = format.media
	if format.binary != nil {
		err = format.binary(ctx, s, &d, r.Bytes)
	} else {
		err = extractText(ctx, &d, r.Bytes, format)
	}
	if err != nil {
		return d, err
	}
	if !ingest.HasText(d.Text) {
		return d, ingest.ErrEmpty
	}
	if d.Title == "" {
		d.Title = path.Base(d.Path)
	}
	d.Title = clip(ingest.ComposeHangul(d.Title))
	return d, nil
}

// extractText decodes a text and takes its format off.
func extractText(ctx context.Context, d *ingest.Document, data []byte, f format) error {
	if err := decodeInto(d, data, f); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return f.extract(d)
}

// titleBytes bounds a title; it is shown in lists and citations.
const titleBytes = 512

func clip(title string) string {
	if len(title) <= titleBytes {
		return title
	}
	return strings.ToValidUTF8(title[:titleBytes], "") + "…"
}
