package ingest

import (
	"context"
	"time"
)

// File is one entry that a Source found.
type File struct {
	// Path names the document inside its collection (Document.Path).
	Path string
	// Name is where the file lies, in the form the operating system wants.
	Name     string
	Size     int64
	Modified time.Time
	// Err says why the entry cannot be read (ErrNotRegular, ErrFileName,
	// ErrTooLarge, a permission); nil for a readable file.
	Err error
}

// Root is one place that was searched, as stored paths see it.
type Root struct {
	// Path is the stored path of the root itself: of a file its own, of a folder
	// the prefix that its documents share, without the slash.
	Path string
	// Folder says that Path is a prefix. The empty Path of a folder covers all.
	Folder bool
	// Unread holds the stored paths of folders below that could not be listed:
	// whether documents there are gone is unknown.
	Unread []string
}

// Listing is what a walk over the given roots found, in a stable order.
type Listing struct {
	Files []File
	Roots []Root
}

// Raw is a file's bytes and their SHA-256 in hex, before anything is read into them.
type Raw struct {
	File  File
	Bytes []byte
	Hash  string
}

// Source finds files and turns them into documents.
type Source interface {
	// Find lists the files under the roots without opening them. A root that is
	// missing is listed as a File with its error.
	Find(ctx context.Context, roots []string) (Listing, error)
	// Load reads and hashes one file, up to the configured bound (ErrTooLarge).
	Load(ctx context.Context, f File) (Raw, error)
	// Extract turns the bytes into clean text: ErrEmpty, ErrUnsupported and
	// ErrCharset say why there is none.
	Extract(ctx context.Context, r Raw) (Document, error)
}

// Chunker cuts a document into chunks whose Tokens never exceed what the
// embedder takes.
type Chunker interface {
	Chunk(d *Document) ([]Chunk, error)
	// Recipe names everything that decides where the cuts fall.
	Recipe() string
}
