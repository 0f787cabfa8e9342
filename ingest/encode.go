package ingest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"
)

// batchTexts bounds the number of texts in one call to the embedder.
const batchTexts = 64

// passage is one text to embed and the places its vector goes to: a text that
// stands in several places is embedded once.
type passage struct {
	key  textKey
	text string
	// size is the length in tokens: exact for a chunk, estimated for a sentence.
	size   int
	places []place
}

// place is a chunk of a document, or one of its sentences.
type place struct {
	work  *work
	chunk int
	// sentence is the index of the sentence, or -1 for the chunk itself.
	sentence int
}

// encoder embeds the chunks of documents and their sentences, equal texts once. It
// belongs to one goroutine.
type encoder struct {
	embedder    Embedder
	states      StateEmbedder // the same; nil where token states are not kept
	batchTokens int
	sentences   SentenceMode
	known       *vectors
	repeats     int // places that took the vector of an equal text
	watch       *stopwatch
	embedded    func(tokens int) // is told of each call
}

func newEncoder(e Embedder, c Config, embedded func(tokens int)) encoder {
	out := encoder{
		embedder: e, batchTokens: c.BatchTokens, sentences: c.Sentences,
		known: newVectors(c.ReuseBytes, e.Dim()), watch: &stopwatch{}, embedded: embedded,
	}
	if c.States {
		out.states, _ = e.(StateEmbedder)
	}
	return out
}

// encode embeds window after window and hands the documents on, whole or failed.
func (r *run) encode(ctx context.Context, windows <-chan []*work, encoded chan<- *work) error {
	for window := range windows {
		if err := r.encoder.encodeWindow(ctx, window); err != nil {
			return err
		}
		for _, w := range window {
			if w.failed != nil {
				r.settle(w.file, failure(w.encoded.Document, w.failed))
				continue
			}
			if err := send(ctx, encoded, w); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

// encodeWindow embeds the texts of all documents of a window, sorted by length:
// texts of one call then need little padding and share their steps well.
func (e *encoder) encodeWindow(ctx context.Context, window []*work) error {
	g := gather{encoder: e, seen: make(map[textKey]int)}
	for _, w := range window {
		g.document(w)
	}
	all := g.all
	slices.SortStableFunc(all, func(a, b passage) int { return cmp.Compare(b.size, a.size) })
	for len(all) > 0 {
		n, tokens := 0, 0
		for n < len(all) && n < batchTexts && (n == 0 || tokens+all[n].size <= e.batchTokens) {
			tokens += all[n].size
			n++
		}
		if err := e.embed(ctx, all[:n]); err != nil {
			return err
		}
		all = all[n:]
	}
	for _, w := range window {
		shareSingleSentences(&w.encoded)
	}
	return nil
}

// gather lists what is to be embedded of documents, each text once.
type gather struct {
	*encoder
	seen map[textKey]int // index in all
	all  []passage
}

// document adds a document and makes room for its vectors.
func (g *gather) document(w *work) {
	d := &w.encoded
	d.Vectors = make([][]float32, len(d.Chunks))
	if g.states != nil {
		d.States = make([]*States, len(d.Chunks))
	}
	if g.sentences == SentencesApart {
		d.Sentences = make([][][]float32, len(d.Chunks))
	}
	for i := range d.Chunks {
		c := &d.Chunks[i]
		g.text(c.EmbedText(), c.Tokens, place{work: w, chunk: i, sentence: -1})
		if d.Sentences == nil {
			continue
		}
		d.Sentences[i] = make([][]float32, len(c.Sentences))
		if isOneSentence(c) {
			continue
		}
		for j, s := range c.Sentences {
			size := c.Tokens * (s.End - s.Start) / len(c.Text)
			g.text(c.Text[s.Start:s.End], size+1, place{work: w, chunk: i, sentence: j})
		}
	}
}

func (g *gather) text(text string, size int, p place) {
	key := keyOf(text)
	// Of texts from before the vectors are known, not the states of their tokens.
	if v, ok := g.known.get(key); ok && (g.states == nil || p.sentence >= 0) {
		g.repeats++
		g.place(p, v)
		return
	}
	if i, ok := g.seen[key]; ok {
		g.repeats++
		g.all[i].places = append(g.all[i].places, p)
		return
	}
	g.seen[key] = len(g.all)
	g.all = append(g.all, passage{key: key, text: text, size: size, places: []place{p}})
}

// isOneSentence reports a chunk that is given to the embedder as one of its sentences would be.
func isOneSentence(c *Chunk) bool {
	return len(c.Heading) == 0 && len(c.Sentences) == 1 && c.Sentences[0] == Span{End: len(c.Text)}
}

func shareSingleSentences(e *Encoded) {
	for i := range e.Sentences {
		if isOneSentence(&e.Chunks[i]) {
			e.Sentences[i][0] = e.Vectors[i]
		}
	}
}

// wanted reports whether a document that has not failed waits for the text.
func (p *passage) wanted() bool {
	return slices.ContainsFunc(p.places, func(at place) bool { return at.work.failed == nil })
}

// embed encodes a batch. When the call fails, each text is tried alone, so that
// only the documents of the texts at fault fail. The error is a cancelled context's.
func (e *encoder) embed(ctx context.Context, batch []passage) error {
	live := slices.DeleteFunc(slices.Clone(batch), func(p passage) bool { return !p.wanted() })
	if len(live) == 0 {
		return ctx.Err()
	}
	err := e.embedTexts(ctx, live)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err == nil {
		return nil
	}
	for _, p := range live {
		if !p.wanted() {
			continue
		}
		err := e.embedTexts(ctx, []passage{p})
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			p.fail(err)
		}
	}
	return nil
}

// fail fails the documents of a text that cannot be embedded.
func (p *passage) fail(err error) {
	for _, at := range p.places {
		if at.work.failed == nil {
			at.work.failed = fmt.Errorf("embed chunk %d: %w", at.chunk, err)
		}
	}
}

func (e *encoder) embedTexts(ctx context.Context, batch []passage) error {
	texts := make([]string, len(batch))
	for i, p := range batch {
		texts[i] = p.text
	}
	start := time.Now()
	out, err := e.give(ctx, texts, batch)
	e.watch.since(start)
	if err != nil {
		return err
	}
	if len(out) != len(batch) {
		return fmt.Errorf("embedder gave %d vectors for %d texts", len(out), len(batch))
	}
	tokens := 0
	for i, p := range batch {
		for _, at := range p.places {
			e.place(at, out[i])
		}
		out[i].States = nil
		e.known.put(p.key, out[i])
		p.places[0].work.tokens += out[i].Tokens // the others cost nothing
		tokens += out[i].Tokens
	}
	e.embedded(tokens)
	return nil
}

// give hands texts to the embedder and asks for the token states of those that are
// chunks.
func (e *encoder) give(ctx context.Context, texts []string, batch []passage) ([]Embedding, error) {
	if e.states == nil {
		return e.embedder.EmbedPassages(ctx, texts)
	}
	wanted := make([]bool, len(batch))
	for i, p := range batch {
		wanted[i] = slices.ContainsFunc(p.places, func(at place) bool { return at.sentence < 0 })
	}
	return e.states.EmbedPassageStates(ctx, texts, wanted, MaxStates(e.embedder.Dim()))
}

// place stores a vector. What the chunker counted and what the embedder was
// given must agree: the token ledger rests on it.
func (e *encoder) place(p place, v Embedding) {
	c := &p.work.encoded.Chunks[p.chunk]
	switch {
	case len(v.Vector) != e.embedder.Dim():
		p.work.failed = fmt.Errorf("embed chunk %d: vector of %d numbers, the model has %d", p.chunk, len(v.Vector), e.embedder.Dim())
	case p.sentence >= 0:
		p.work.encoded.Sentences[p.chunk][p.sentence] = v.Vector
	case v.Tokens != c.Tokens:
		p.work.failed = fmt.Errorf("embed chunk %d: counted %d tokens, the embedder was given %d", p.chunk, c.Tokens, v.Tokens)
	case e.states != nil && v.States == nil:
		p.work.failed = fmt.Errorf("embed chunk %d: %w", p.chunk, ErrStates)
	default:
		p.work.encoded.Vectors[p.chunk] = v.Vector
		if e.states != nil {
			p.work.encoded.States[p.chunk] = v.States
		}
	}
}
