// Package chunk cuts documents into the pieces that are embedded, retrieved and
// cited.
//
// A chunk never crosses a heading. Inside a section, paragraphs, list items,
// tables and code fences are taken whole, as many as fit; one that is too long
// by itself is cut at sentence ends, else between words, else between
// characters. Everything is measured with the embedder's own tokenizer on what
// the embedder is given: prefix, heading path, text and special tokens.
//
// Chunk.Text is the document's text from Start to End, with two exceptions that
// keep cut pieces readable: a cut code fence is closed at the end of each piece
// and reopened, with its language, at the start of the next; and the header
// rows of a cut table stand again above the rows of each later piece. Start and
// End then name the part of the document that the piece adds.
//
// Heading lines are not part of any chunk's text (the path carries them), and a
// section without text gives no chunk. A heading path that would take more than
// half of a chunk is shortened from the outside. Apart from those and from blank space,
// every byte of the document lies in a chunk.
package chunk

import (
	"fmt"
	"sort"

	"ragd/ingest"
)

// version is raised whenever the same document would be cut differently.
const version = 3

// minTarget leaves room for a few words beside a heading.
const minTarget = 32

// Config sets the sizes, in tokens of the embedder, prefix and heading included.
type Config struct {
	// Target is the size that chunks are filled up to. A code fence or a table
	// that fits into Max is kept whole even when it is longer than Target.
	Target int
	// Max is what the embedder takes; no chunk exceeds it.
	Max int
	// Overlap is how much of a chunk's end, in whole sentences, stands again at
	// the start of the next one of the same section; 0 for none.
	Overlap int
}

// DefaultConfig gives chunks of 256 tokens with an overlap of 64. In English a
// token is about four characters, so this is the 1,024 characters with 256 of
// overlap that did best, together with 512 characters without, for BM25 on the
// Chroma chunking questions (recall of reference characters .885 at 1,024
// tokens of context, against .859 for 1,024 characters without overlap). A
// token of Korean is about 1.7 characters, so the same budget holds some 430.
// The overlap only costs where a section is longer than one chunk.
func DefaultConfig(maxTokens int) Config {
	target := min(256, maxTokens)
	return Config{Target: target, Max: maxTokens, Overlap: target / 4}
}

// Validate says which size makes no sense.
func (c Config) Validate() error {
	switch {
	case c.Target < minTarget:
		return fmt.Errorf("chunk: size must be at least %d tokens, got %d", minTarget, c.Target)
	case c.Target > c.Max:
		return fmt.Errorf("chunk: size of %d tokens exceeds the %d that the embedding model takes", c.Target, c.Max)
	case c.Overlap < 0:
		return fmt.Errorf("chunk: overlap must not be negative, got %d", c.Overlap)
	case c.Overlap >= c.Target:
		return fmt.Errorf("chunk: overlap of %d tokens must be smaller than the size of %d", c.Overlap, c.Target)
	}
	return nil
}

// Chunker cuts documents. It is safe for concurrent use if its counter is.
type Chunker struct {
	counter ingest.TokenCounter
	config  Config
	base    int // tokens of an empty passage: prefix and special tokens
}

var _ ingest.Chunker = (*Chunker)(nil)

// New returns a Chunker that measures with counter.
func New(counter ingest.TokenCounter, c Config) (*Chunker, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	base := counter.CountPassage("")
	if base*2 > c.Target {
		return nil, fmt.Errorf("chunk: size of %d tokens is too small: an empty passage alone takes %d", c.Target, base)
	}
	return &Chunker{counter: counter, config: c, base: base}, nil
}

// Recipe names the rules and sizes.
func (c *Chunker) Recipe() string {
	return fmt.Sprintf("chunk/%d %d+%d/%d", version, c.config.Target, c.config.Overlap, c.config.Max)
}

// Chunk cuts d. Chunks come in the order of the text, numbered from 0. A
// document without text below its headings gives none.
func (c *Chunker) Chunk(d *ingest.Document) ([]ingest.Chunk, error) {
	var out []ingest.Chunk
	for _, s := range sections(d) {
		p := c.newPacker(d.Text, s.heading)
		for _, b := range s.blocks {
			p.units = c.appendUnits(p.units, d.Text, b, p.room)
		}
		chunks, err := p.pack()
		if err != nil {
			return nil, fmt.Errorf("chunk: %s: %w", d.Path, err)
		}
		out = append(out, chunks...)
	}
	for i := range out {
		out[i].Ordinal = i
		out[i].Page = pageAt(d.Pages, out[i].Start)
		out[i].Sentences = c.sentences(out[i].Text)
	}
	return out, nil
}

// pageAt is the 1-based page that holds an offset, 0 without pages. Of pages
// that start at the same place, those before the last are empty.
func pageAt(pages []int, at int) int {
	return sort.SearchInts(pages, at+1)
}

// cost is what a text adds to a passage. It is exact for the text alone; a sum
// of costs may differ a little from the cost of the whole.
func (c *Chunker) cost(text string) int {
	return max(c.counter.CountPassage(text)-c.base, 0)
}
