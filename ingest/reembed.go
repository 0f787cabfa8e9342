package ingest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Stale is a stored chunk without vectors of the model wanted.
type Stale struct {
	Document int64 // id
	Path     string
	Chunk    Chunk
	// StatesOnly: its vectors are there, the states of its tokens are missing.
	StatesOnly bool
}

// Revision is what the model wanted makes of a chunk.
type Revision struct {
	Document, Chunk int64 // ids
	Vector          []float32
	Sentences       [][]float32 // nil when they are not encoded
	States          *States     // nil when they are not kept
}

// Revising is a collection that gets vectors of another model beside those that
// answer.
type Revising interface {
	// Count returns how many chunks have all that is wanted of the model, and how many
	// there are.
	Count(ctx context.Context) (done, of int64, err error)
	// Stale lists chunks that have not, in the order of ids, from the one after.
	Stale(ctx context.Context, after int64, limit int) ([]Stale, error)
	// Add stores vectors. Chunks that are gone meanwhile are passed over.
	Add(ctx context.Context, list []Revision) error
	// Switch makes the model wanted the one that answers, in one transaction, if
	// every chunk has its vectors, and says whether it did. renew gives each
	// document's recipe its new form.
	Switch(ctx context.Context, renew func(recipe string) string) (bool, error)
	// Hold makes writers of the collection wait until release is called.
	Hold(ctx context.Context) (release func(), err error)
	// Clean removes the vectors of other models.
	Clean(ctx context.Context) error
}

// RevisionReport sums up how a collection was embedded anew.
type RevisionReport struct {
	Collection string `json:"collection"`
	// From and To are the models before and after.
	From string `json:"from"`
	To   string `json:"to"`
	// Switched says that To answers now.
	Switched bool `json:"switched"`
	// Chunks were embedded by this run, of Total that there are.
	Chunks int   `json:"chunks"`
	Total  int64 `json:"total"`
	Tokens int   `json:"tokens"`
	// Long chunks exceed what To takes: theirs are the means of their parts' vectors,
	// until they are ingested again.
	Long int `json:"long"`
	// Failed lists the documents with a chunk that To cannot encode; then From goes
	// on answering.
	Failed      []FileResult  `json:"failed"`
	Interrupted bool          `json:"interrupted,omitempty"`
	Elapsed     time.Duration `json:"elapsed_ns"`
}

// RevisionProgress is where the run stands.
type RevisionProgress struct {
	Collection string
	Done, Of   int64 // chunks
	Tokens     int
	Elapsed    time.Duration
	began      int64 // what was done before this run
}

// Left guesses the time that is left, "…" before anything is done.
func (p RevisionProgress) Left() string {
	if p.Done <= p.began {
		return "…"
	}
	rest := float64(p.Of-p.Done) / float64(p.Done-p.began)
	return time.Duration(p.Elapsed.Seconds() * rest * float64(time.Second)).Round(time.Second).String()
}

// revisedChunks are embedded and stored together: what an interruption loses.
const revisedChunks = 64

// Reembedder gives collections vectors of another model.
type Reembedder struct {
	embedder Embedder
	config   Config
	observe  func(RevisionProgress)
}

// NewReembedder takes the sentence mode and the size of batches from c. observe
// may be nil.
func NewReembedder(embedder Embedder, c Config, observe func(RevisionProgress)) *Reembedder {
	if observe == nil {
		observe = func(RevisionProgress) {}
	}
	return &Reembedder{embedder: embedder, config: c, observe: observe}
}

// Run embeds what is stale, again and again while documents come in meanwhile,
// switches, and cleans up. It may be interrupted at any time: what is stored stays,
// and the next run goes on from there. Chunks that cannot be encoded are named in
// the report; the collection then keeps its model. The error is nil unless the run
// ended early.
func (r *Reembedder) Run(ctx context.Context, c Revising, report RevisionReport) (RevisionReport, error) {
	report.Failed = []FileResult{}
	if _, ok := r.embedder.(StateEmbedder); r.config.States && !ok {
		return report, fmt.Errorf("reembed %s: %w", report.Collection, ErrStates)
	}
	v := &revision{Reembedder: r, c: c, started: time.Now(), report: report}
	long := &longEmbedder{Embedder: r.embedder}
	v.encoder = newEncoder(long, r.config, v.embedded)
	err := v.all(ctx)
	v.report.Interrupted, v.report.Elapsed = ctx.Err() != nil, time.Since(v.started)
	return v.report, err
}

// revision is one run over one collection.
type revision struct {
	*Reembedder
	c        Revising
	encoder  encoder
	started  time.Time
	began    int64 // chunks that an earlier run did
	done, of int64
	report   RevisionReport
}

func (v *revision) all(ctx context.Context) error {
	var err error
	if v.began, _, err = v.c.Count(ctx); err != nil {
		return fmt.Errorf("reembed %s: %w", v.report.Collection, err)
	}
	for !v.report.Switched {
		if err := v.round(ctx); err != nil {
			return fmt.Errorf("reembed %s: %w", v.report.Collection, err)
		}
		if len(v.report.Failed) > 0 {
			return nil
		}
	}
	if err := v.c.Clean(ctx); err != nil {
		return fmt.Errorf("reembed %s: done, but the old vectors could not be removed: %w", v.report.Collection, err)
	}
	return nil
}

// round embeds what is stale and tries to switch. When documents come in faster than
// that, it makes their writers wait as soon as one window is left to embed.
func (v *revision) round(ctx context.Context) error {
	if err := v.embedStale(ctx); err != nil || len(v.report.Failed) > 0 {
		return err
	}
	var err error
	if v.report.Switched, err = v.c.Switch(ctx, v.renew); err != nil || v.report.Switched {
		return err
	}
	if v.done, v.of, err = v.c.Count(ctx); err != nil || v.of-v.done > revisedChunks {
		return err
	}
	release, err := v.c.Hold(ctx)
	if err != nil {
		return err
	}
	defer release()
	if err := v.embedStale(ctx); err != nil || len(v.report.Failed) > 0 {
		return err
	}
	v.report.Switched, err = v.c.Switch(ctx, v.renew)
	return err
}

// renew puts the new model into a recipe that ends with the old one.
func (v *revision) renew(recipe string) string {
	for _, mode := range []SentenceMode{SentencesApart, SentencesOff} {
		for _, states := range []bool{false, true} {
			if rest, ok := strings.CutSuffix(recipe, recipeEnd(v.report.From, mode, states)); ok {
				return rest + recipeEnd(v.report.To, v.config.Sentences, v.config.States)
			}
		}
	}
	return recipe
}

// embedStale goes once over the chunks.
func (v *revision) embedStale(ctx context.Context) (err error) {
	for after := int64(0); ; {
		if v.done, v.of, err = v.c.Count(ctx); err != nil {
			return err
		}
		v.report.Total = v.of
		v.embedded(0)
		list, err := v.c.Stale(ctx, after, revisedChunks)
		if err != nil || len(list) == 0 {
			return err
		}
		after = list[len(list)-1].Chunk.ID
		window := v.window(list)
		if err := v.encoder.encodeWindow(ctx, window); err != nil {
			return err
		}
		if err := v.add(ctx, list, window); err != nil {
			return err
		}
	}
}

// window makes a document of each chunk, for each fails alone.
func (v *revision) window(list []Stale) []*work {
	out := make([]*work, len(list))
	for i, s := range list {
		c := s.Chunk
		if s.StatesOnly {
			c.Sentences = nil
		}
		if c.Tokens = v.embedder.CountPassage(c.EmbedText()); c.Tokens > v.embedder.MaxTokens() {
			v.report.Long++
			c.Tokens = v.encoder.embedder.CountPassage(c.EmbedText())
		}
		out[i] = &work{encoded: Encoded{Chunks: []Chunk{c}}}
	}
	return out
}

// add stores what was encoded, to the end even when the run is interrupted.
func (v *revision) add(ctx context.Context, list []Stale, window []*work) error {
	storing, cancel := finishing(ctx)
	defer cancel()
	var done []Revision
	for i, w := range window {
		if w.failed != nil {
			v.fail(list[i], w.failed)
			continue
		}
		r := Revision{Document: list[i].Document, Chunk: list[i].Chunk.ID, Vector: w.encoded.Vectors[0]}
		if w.encoded.Sentences != nil {
			r.Sentences = w.encoded.Sentences[0]
		}
		if w.encoded.States != nil {
			r.States = w.encoded.States[0]
		}
		done = append(done, r)
	}
	if err := v.c.Add(storing, done); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	v.report.Chunks += len(done)
	return ctx.Err()
}

func (v *revision) fail(s Stale, err error) {
	n := len(v.report.Failed)
	if n == 0 || v.report.Failed[n-1].Path != s.Path {
		v.report.Failed = append(v.report.Failed, FileResult{Path: s.Path, Status: Failed, Reason: err.Error()})
	}
}

func (v *revision) embedded(tokens int) {
	v.report.Tokens += tokens
	v.observe(RevisionProgress{Collection: v.report.Collection, Done: v.done, Of: v.of, Tokens: v.report.Tokens, Elapsed: time.Since(v.started), began: v.began})
}
