// Package ingest is the document road: source → chunk → encode → store.
package ingest

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Errors that a source reports for one document; the run goes on.
var (
	// ErrEmpty: the document holds no text to index; it is skipped.
	ErrEmpty = errors.New("no text")
	// ErrUnsupported: no extractor reads this type; it is skipped.
	ErrUnsupported = errors.New("unsupported file type")
	// ErrCharset: the text's encoding could not be told with confidence.
	ErrCharset = errors.New("unknown text encoding")
	// ErrTooLarge: the file exceeds the configured bound.
	ErrTooLarge = errors.New("file too large")
	// ErrNotRegular: a symbolic link, pipe, socket or device; it is not opened
	// and counts as skipped.
	ErrNotRegular = errors.New("not a regular file")
	// ErrFileName: a name that cannot be stored (not valid UTF-8).
	ErrFileName = errors.New("file name is not valid UTF-8")
)

// ErrNoCollection: a named collection does not exist.
var ErrNoCollection = errors.New("no such collection")

// NoCollectionError is an ErrNoCollection with the name.
type NoCollectionError struct{ Name string }

func (e *NoCollectionError) Error() string { return fmt.Sprintf("no such collection: %q", e.Name) }

// Is makes it an ErrNoCollection.
func (e *NoCollectionError) Is(target error) bool { return target == ErrNoCollection }

// ErrModel: a collection's vectors are of another embedding model.
var ErrModel = errors.New("embedding model differs from the collection's")

// ModelError is an ErrModel with the names.
type ModelError struct {
	Collection string
	// Have is the collection's model, Want the one in use.
	Have, Want string
}

func (e *ModelError) Error() string {
	return fmt.Sprintf("collection %q is embedded by %q, not by %q: run ragd reembed", e.Collection, e.Have, e.Want)
}

// Is makes it an ErrModel.
func (e *ModelError) Is(target error) bool { return target == ErrModel }

// ErrUnavailable is what a Store wraps when the database cannot be reached.
// It ends the run, as ErrModel does; any other store error fails one document.
var ErrUnavailable = errors.New("database unavailable")

// Document is one file's text, cleaned: valid UTF-8, no U+0000, "\n" line ends,
// no byte order mark.
type Document struct {
	// Path names the document inside its collection, slash separated.
	Path string
	// Title is the first heading or the front matter's title, else the file name.
	Title string
	// Text is Markdown for Markdown and HTML sources, else plain text.
	Text string
	// Markdown says whether Text is to be read as Markdown.
	Markdown bool
	// Type is the media type found, Charset the encoding the bytes were in
	// ("utf-8", "euc-kr", ...); CharsetGuessed is set when it was inferred
	// without a mark or proof.
	Type           string
	Charset        string
	CharsetGuessed bool
	// Warnings says what was changed while reading, for the summary.
	Warnings []string
	// Hash is the SHA-256 of the file's bytes, hex.
	Hash     string
	Bytes    int64
	Modified time.Time
	// Metadata holds front matter and other keys, flattened to strings and lists of strings.
	Metadata map[string]any
	// Pages gives the byte offset in Text at which each page starts, when the
	// format has pages.
	Pages []int
}

// Chunk is a piece of a Document that is embedded, retrieved and cited.
type Chunk struct {
	// ID is assigned by the store.
	ID int64
	// Ordinal is the place among the document's chunks, from 0.
	Ordinal int
	// Heading is the path of headings above the chunk, outermost first.
	Heading []string
	// Text is the chunk itself, a substring of Document.Text (code fences that
	// had to be cut are closed and reopened; then it is not a substring).
	Text string
	// Start and End are the byte range in Document.Text; Page is 1-based, 0 for none.
	Start, End int
	Page       int
	// Tokens is what the embedder is given for this chunk: prefix, heading and
	// special tokens included.
	Tokens int
	// Sentences are byte ranges in Text, each encoded apart.
	Sentences []Span
}

// Span is a half-open byte range.
type Span struct{ Start, End int }

// EmbedText is the text the embedder is given: the heading path and the chunk.
func (c *Chunk) EmbedText() string {
	if len(c.Heading) == 0 {
		return c.Text
	}
	n := len(c.Text) + 1
	for _, h := range c.Heading {
		n += len(h) + 3
	}
	b := make([]byte, 0, n)
	for i, h := range c.Heading {
		if i > 0 {
			b = append(b, " > "...)
		}
		b = append(b, h...)
	}
	b = append(b, '\n')
	return string(append(b, c.Text...))
}

// Embedding is one encoded text.
type Embedding struct {
	Vector []float32 // unit length
	Tokens int       // tokens the model was given, special tokens included
	States *States   // nil where they were not wanted
}

// TokenCounter measures a passage in the embedder's own tokens, as it would be
// given to the model (prefix and special tokens included).
type TokenCounter interface {
	CountPassage(text string) int
}

// Embedder encodes passages. Texts longer than MaxTokens are an error, never cut.
type Embedder interface {
	TokenCounter
	// Model identifies the weights and the recipe; vectors of different models
	// are never compared.
	Model() string
	Dim() int
	MaxTokens() int
	EmbedPassages(ctx context.Context, texts []string) ([]Embedding, error)
}

// Analyzer turns text into the terms that lexical search compares.
type Analyzer interface {
	// Terms returns each term with the number of times it occurs. The same text
	// gives the same terms, in a document as in a question.
	Terms(text string) map[string]int
}

// Encoded is a document ready to be stored.
type Encoded struct {
	Document  Document
	Chunks    []Chunk
	Vectors   [][]float32   // one a chunk
	Sentences [][][]float32 // [chunk][sentence] vectors; nil when sentences are off
	States    []*States     // one a chunk; nil when token states are not kept
}

// State is what the store already knows about a path.
type State struct {
	Hash string
	// Recipe is the chunking and embedding recipe it was indexed under; another
	// recipe means the document is stale even if its bytes are the same.
	Recipe string
}

// Store keeps documents. Each Put or Delete is one transaction: readers see a
// document wholly before or wholly after.
type Store interface {
	// States returns the state of every stored path of a collection.
	States(ctx context.Context, collection string) (map[string]State, error)
	// Put inserts or replaces a document with its chunks and vectors.
	// changed is false when the same hash and recipe were already there.
	Put(ctx context.Context, collection, model, recipe string, e Encoded) (changed bool, err error)
	// Delete removes documents by path and returns how many there were.
	Delete(ctx context.Context, collection string, paths []string) (int, error)
}
