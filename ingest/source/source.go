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
)

// Config bounds what is read.
type Config struct {
	// MaxBytes is the largest file that is read; larger ones fail with
	// ingest.ErrTooLarge.
	MaxBytes int64
}

// DefaultConfig reads files of up to 16 MiB.
func DefaultConfig() Config { return Config{MaxBytes: 16 << 20} }

// Source reads files of the local file system. It is safe for concurrent use.
type Source struct {
	config Config
}

var _ ingest.Source = (*Source)(nil)

// New returns a Source, or an error when a bound makes no sense.
func New(c Config) (*Source, error) {
	if c.MaxBytes <= 0 {
		return nil, fmt.Errorf("source: max bytes must be positive, got %d", c.MaxBytes)
	}
	return &Source{config: c}, nil
}

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
	if err := decodeInto(&d, r.Bytes, format); err != nil {
		return d, err
	}
	if err := ctx.Err(); err != nil {
		return d, err
	}
	if err := format.extract(&d); err != nil {
		return d, err
	}
	if !ingest.HasText(d.Text) {
		return d, ingest.ErrEmpty
	}
	if d.Title == "" {
		d.Title = path.Base(d.Path)
	}
	d.Title = clip(d.Title)
	return d, nil
}

// titleBytes bounds a title; it is shown in lists and citations.
const titleBytes = 512

func clip(title string) string {
	if len(title) <= titleBytes {
		return title
	}
	return strings.ToValidUTF8(title[:titleBytes], "") + "…"
}
