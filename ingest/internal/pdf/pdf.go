// Package pdf reads the text of PDF files as Markdown with page numbers.
//
// The files are read by PDFium, compiled to WebAssembly and run in a sandbox
// without files, network or environment: a hostile file can cost time and a
// bounded amount of memory, no more.
package pdf

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/klippa-app/go-pdfium"
	pdferrors "github.com/klippa-app/go-pdfium/errors"
	"github.com/klippa-app/go-pdfium/references"
	"github.com/klippa-app/go-pdfium/requests"
	"github.com/klippa-app/go-pdfium/webassembly"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// Errors of one file.
var (
	// ErrPassword: the file is encrypted and opens with a password only.
	ErrPassword = errors.New("the PDF asks for a password")
	// ErrBroken: not a PDF, or too damaged to be opened.
	ErrBroken = errors.New("the PDF is damaged")
	// ErrNoText: the pages are images; nothing on them is text.
	ErrNoText = errors.New("the PDF has no text layer (scanned pages need OCR first)")
	// ErrTooLong: more pages or characters than Config allows.
	ErrTooLong = errors.New("the PDF is too long")
)

// Config bounds a Reader.
type Config struct {
	// MaxPages and MaxChars bound one file.
	MaxPages, MaxChars int
	// MemoryBytes bounds what the sandbox of one file may take.
	MemoryBytes int64
	// CacheDir keeps the compiled sandbox between runs; "" compiles it each time
	// (about two seconds).
	CacheDir string
	// Workers is how many files are read at once.
	Workers int
}

// DefaultConfig reads up to 5,000 pages of 20 million characters in 512 MiB, two
// files at once.
func DefaultConfig() Config {
	return Config{MaxPages: 5000, MaxChars: 20_000_000, MemoryBytes: 512 << 20, Workers: 2}
}

// Document is what a file says.
type Document struct {
	Title    string
	Author   string
	Markdown string
	// Pages is the byte offset in Markdown at which each page starts.
	Pages []int
	// Blank lists the pages without text, from 1.
	Blank []int
	// Repeated lists the running headers and footers that were left out.
	Repeated []string
}

// Reader reads PDF files. It is safe for concurrent use; the sandbox is built
// when the first file comes.
type Reader struct {
	config Config
	once   sync.Once
	pool   pdfium.Pool
	cache  wazero.CompilationCache
	err    error
}

// NewReader returns a Reader; Close frees what it holds.
func NewReader(c Config) (*Reader, error) {
	if c.MaxPages <= 0 || c.MaxChars <= 0 || c.Workers <= 0 || c.MemoryBytes < wasmPage {
		return nil, fmt.Errorf("pdf: pages, workers and memory must be positive: %+v", c)
	}
	return &Reader{config: c}, nil
}

// wasmPage is the unit in which WebAssembly memory grows.
const wasmPage = 64 << 10

// start compiles the sandbox. No folder is mounted in it.
func (r *Reader) start() {
	features := api.CoreFeaturesV2 | experimental.CoreFeaturesExceptionHandling
	rc := wazero.NewRuntimeConfig().WithCoreFeatures(features).
		WithMemoryLimitPages(uint32(r.config.MemoryBytes / wasmPage)).WithCloseOnContextDone(true)
	if r.config.CacheDir != "" {
		if r.cache, r.err = wazero.NewCompilationCacheWithDir(r.config.CacheDir); r.err != nil {
			return
		}
		rc = rc.WithCompilationCache(r.cache)
	}
	r.pool, r.err = webassembly.Init(webassembly.Config{
		MaxIdle: r.config.Workers, MaxTotal: r.config.Workers, RuntimeConfig: rc,
		FSConfig: wazero.NewFSConfig(), Stdout: io.Discard, Stderr: io.Discard,
	})
}

// Close ends the sandbox.
func (r *Reader) Close() error {
	var err error
	if r.once.Do(func() { r.err = errors.New("pdf: reader is closed") }); r.pool != nil {
		err = r.pool.Close()
	}
	if r.cache != nil {
		err = errors.Join(err, r.cache.Close(context.Background()))
	}
	return err
}

// Read returns the text of a file. A cancelled context ends it even inside a page.
func (r *Reader) Read(ctx context.Context, data []byte) (Document, error) {
	r.once.Do(r.start)
	if r.err != nil {
		return Document{}, fmt.Errorf("pdf: start: %w", r.err)
	}
	p, err := r.pool.GetInstanceWithContext(ctx)
	if err != nil {
		return Document{}, fmt.Errorf("pdf: %w", errors.Join(ctx.Err(), err))
	}
	stop := context.AfterFunc(ctx, func() { _ = p.Kill() })
	defer func() {
		if stop() {
			_ = p.Close()
		}
	}()
	d, err := r.read(ctx, p, data)
	if ctx.Err() != nil {
		return Document{}, context.Cause(ctx)
	}
	return d, err
}

func (r *Reader) read(ctx context.Context, p pdfium.Pdfium, data []byte) (Document, error) {
	file, err := p.OpenDocument(&requests.OpenDocument{File: &data})
	switch {
	case errors.Is(err, pdferrors.ErrPassword), errors.Is(err, pdferrors.ErrSecurity):
		return Document{}, ErrPassword
	case err != nil:
		return Document{}, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	count, err := p.FPDF_GetPageCount(&requests.FPDF_GetPageCount{Document: file.Document})
	if err != nil {
		return Document{}, fmt.Errorf("%w: %w", ErrBroken, err)
	}
	if count.PageCount > r.config.MaxPages {
		return Document{}, fmt.Errorf("%w: %d pages, at most %d are read", ErrTooLong, count.PageCount, r.config.MaxPages)
	}
	pages, err := r.readPages(ctx, p, file.Document, count.PageCount)
	if err != nil {
		return Document{}, err
	}
	d := layout(pages)
	if len(d.Blank) == len(pages) {
		return Document{}, ErrNoText
	}
	d.Title = metaText(p, file.Document, "Title")
	d.Author = metaText(p, file.Document, "Author")
	return d, nil
}

func (r *Reader) readPages(ctx context.Context, p pdfium.Pdfium, doc references.FPDF_DOCUMENT, n int) ([]page, error) {
	pages := make([]page, n)
	chars := 0
	for i := range pages {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		t := textPage{pdfium: p, page: requests.Page{ByIndex: &requests.PageByIndex{Document: doc, Index: i}}, room: r.config.MaxChars - chars}
		var err error
		if pages[i], err = t.read(); err != nil {
			return nil, fmt.Errorf("page %d: %w", i+1, err)
		}
		chars += t.count
	}
	return pages, nil
}

// metaText is an entry of the file's own description, "" when there is none.
func metaText(p pdfium.Pdfium, doc references.FPDF_DOCUMENT, tag string) string {
	r, err := p.FPDF_GetMetaText(&requests.FPDF_GetMetaText{Document: doc, Tag: tag})
	if err != nil {
		return ""
	}
	return strings.Join(strings.Fields(strings.ToValidUTF8(strings.ReplaceAll(r.Value, "\x00", " "), "\ufffd")), " ")
}
