package eval

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"strings"

	"ragd/ingest"
)

// passages is a set as the document road's source: each document is a file.
type passages struct {
	ids  []string
	docs map[string]Document
	// markdown: the texts are whole documents, whose bytes keep their places.
	markdown bool
}

func newPassages(list []Document) *passages {
	p := &passages{docs: make(map[string]Document, len(list))}
	for _, d := range list {
		if _, twice := p.docs[d.ID]; !twice {
			p.ids = append(p.ids, d.ID)
			p.docs[d.ID] = d
		}
	}
	return p
}

// hash names the content: a corpus that was ingested once is not ingested again.
func (p *passages) hash() string {
	h := sha256.New()
	for _, id := range p.ids {
		d := p.docs[id]
		fmt.Fprintf(h, "%d %q %q %q\n", len(d.Text), id, d.Title, d.Text)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// Find implements ingest.Source.
func (p *passages) Find(context.Context, []string) (ingest.Listing, error) {
	list := ingest.Listing{Roots: []ingest.Root{{Folder: true}}}
	for _, id := range p.ids {
		list.Files = append(list.Files, ingest.File{Path: id, Name: id, Size: int64(len(p.docs[id].Text))})
	}
	return list, nil
}

// Load implements ingest.Source.
func (p *passages) Load(_ context.Context, f ingest.File) (ingest.Raw, error) {
	d := p.docs[f.Path]
	sum := sha256.Sum256([]byte(d.Title + "\x00" + d.Text))
	return ingest.Raw{File: f, Bytes: []byte(d.Text), Hash: hex.EncodeToString(sum[:])}, nil
}

// Extract implements ingest.Source.
func (p *passages) Extract(_ context.Context, r ingest.Raw) (ingest.Document, error) {
	d := p.docs[r.File.Path]
	text := strings.ToValidUTF8(strings.ReplaceAll(d.Text, "\x00", " "), "\ufffd")
	if !p.markdown {
		text = strings.TrimSpace(text)
	}
	if text == "" {
		text = d.Title
	}
	if !ingest.HasText(text) {
		return ingest.Document{}, ingest.ErrEmpty
	}
	return ingest.Document{
		Path: d.ID, Title: d.Title, Text: text, Type: "text/plain", Charset: "utf-8", Hash: r.Hash, Bytes: int64(len(text)),
		Markdown: p.markdown,
	}, nil
}

// wholeChunker makes one chunk of each document, under its title, with the
// sentences that the chunker in use finds.
type wholeChunker struct {
	ingest.Chunker
	count ingest.TokenCounter
}

// Chunk implements ingest.Chunker.
func (w wholeChunker) Chunk(d *ingest.Document) ([]ingest.Chunk, error) {
	parts, err := w.Chunker.Chunk(d)
	if err != nil {
		return nil, err
	}
	whole := ingest.Chunk{Text: d.Text, End: len(d.Text)}
	if d.Title != "" {
		whole.Heading = []string{d.Title}
	}
	for _, p := range parts {
		for _, s := range p.Sentences {
			whole.Sentences = append(whole.Sentences, ingest.Span{Start: p.Start + s.Start, End: p.Start + s.End})
		}
	}
	whole.Tokens = w.count.CountPassage(whole.EmbedText())
	return []ingest.Chunk{whole}, nil
}

// Recipe implements ingest.Chunker.
func (w wholeChunker) Recipe() string { return "whole passages; " + w.Chunker.Recipe() }

// cutEmbedder encodes the front of texts that are longer than the model takes, as
// the published scores of these sets were made.
type cutEmbedder struct {
	ingest.Embedder
	most int // tokens
}

// CountPassage implements ingest.TokenCounter: of what is left after the cut.
func (c cutEmbedder) CountPassage(text string) int { return c.Embedder.CountPassage(c.cut(text)) }

// MaxTokens implements ingest.Embedder.
func (c cutEmbedder) MaxTokens() int { return c.most }

// EmbedPassages implements ingest.Embedder.
func (c cutEmbedder) EmbedPassages(ctx context.Context, texts []string) ([]ingest.Embedding, error) {
	return c.Embedder.EmbedPassages(ctx, c.fronts(texts))
}

func (c cutEmbedder) fronts(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = c.cut(t)
	}
	return out
}

// cutStateEmbedder is a cutEmbedder that also gives token states, where the embedder
// within does.
type cutStateEmbedder struct{ cutEmbedder }

// EmbedPassageStates implements ingest.StateEmbedder.
func (c cutStateEmbedder) EmbedPassageStates(ctx context.Context, texts []string, wanted []bool, limit int) ([]ingest.Embedding, error) {
	e, ok := c.Embedder.(ingest.StateEmbedder)
	if !ok {
		return nil, ingest.ErrStates
	}
	return e.EmbedPassageStates(ctx, c.fronts(texts), wanted, limit)
}

// cut returns the longest front of text, in whole words, that fits.
func (c cutEmbedder) cut(text string) string {
	if c.Embedder.CountPassage(text) <= c.most {
		return text
	}
	lo, hi := 0, len(text)
	for hi-lo > 1 {
		mid := (lo + hi) / 2
		if c.Embedder.CountPassage(front(text, mid)) <= c.most {
			lo = mid
		} else {
			hi = mid
		}
	}
	return front(text, lo)
}

// front is text up to byte n, less the word that n falls into.
func front(text string, n int) string {
	for n > 0 && text[n]&0xC0 == 0x80 {
		n--
	}
	if i := strings.LastIndexAny(text[:n], " \n\t"); i > n/2 {
		n = i
	}
	return text[:n]
}

// noModel stands in for an embedding model where only words are searched for.
// Passages are counted by counter where there is one.
type noModel struct{ counter ingest.TokenCounter }

const noDim = 8

func (noModel) Model() string  { return "none" }
func (noModel) Dim() int       { return noDim }
func (noModel) MaxTokens() int { return 1 << 30 }

func (m noModel) CountPassage(text string) int {
	if m.counter == nil {
		return 1
	}
	return m.counter.CountPassage(text)
}

// EmbedPassages gives every text a direction of its own, for the store takes no other.
func (m noModel) EmbedPassages(_ context.Context, texts []string) ([]ingest.Embedding, error) {
	out := make([]ingest.Embedding, len(texts))
	for i, t := range texts {
		h := fnv.New64a()
		if _, err := io.WriteString(h, t); err != nil {
			return nil, err
		}
		r := rand.New(rand.NewPCG(h.Sum64(), 0))
		v := make([]float32, noDim)
		for k := range v {
			v[k] = float32(r.NormFloat64())
		}
		out[i] = ingest.Embedding{Vector: v, Tokens: m.CountPassage(t)}
	}
	return out, nil
}
