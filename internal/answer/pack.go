package answer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"ragd/ingest"
	"ragd/prompt"
	"ragd/prompt/budget"
	"ragd/prompt/chat"
	"ragd/retrieve"
	"ragd/telemetry"
)

// view is one presented chunk.
type view struct {
	hit       retrieve.Hit
	rank      int    // place among the kept hits, from 0
	text      string // what of the chunk is presented
	sentences bool
	truncated bool
	joined    []int64       // neighbours that text holds, too
	wide      *ingest.Chunk // the chunk with them
}

func (v view) source(marker int) Source {
	s := source(v.hit, marker)
	s.Sentences, s.Truncated = v.sentences, v.truncated
	s.Text, s.Joined = v.text, v.joined
	return s
}

// costs are the tokens of the prompt before evidence.
type costs struct {
	fixed budget.Fixed
	turns []budget.Turn
}

// measure counts what cannot be left out and refuses a request that does not fit
// before anything is searched for.
func (a *asking) measure(ctx context.Context) (err error) {
	_, end := a.rec.Begin(ctx, telemetry.StagePack, "")
	defer func() { end(err) }()
	window := a.Generator.Model().Window
	b := a.req.budget()
	for field, n := range map[string]*int{"budget.context_tokens": b.ContextTokens, "budget.answer_tokens": b.AnswerTokens} {
		if n != nil && *n > window {
			return invalid(field, fmt.Sprintf("%d is more than the window of the model, %d tokens", *n, window))
		}
	}
	a.history = prompt.Turns(utterances(a.req.History))
	if a.costs, err = a.bones(); err != nil {
		return err
	}
	_, err = budget.Pack(a.problem(ctx, nil, time.Time{}))
	return overBudget(err)
}

func utterances(turns []Turn) []prompt.Utterance {
	out := make([]prompt.Utterance, len(turns))
	for i, t := range turns {
		out[i] = prompt.Utterance{Role: t.Role, Text: t.Content}
	}
	return out
}

func overBudget(err error) error {
	var over *budget.OverBudgetError
	if errors.As(err, &over) {
		return &Error{Code: OverBudget, Message: over.Error()}
	}
	return err
}

// standIn is an item of evidence before any is chosen.
var standIn = prompt.Item{Marker: 1, Text: "-"}

// bones renders the prompt with a stand-in for the evidence, once without and
// once with the history, and counts each component.
func (a *asking) bones() (costs, error) {
	c := a.composition(nil)
	c.Evidence = []prompt.Item{standIn}
	bare, err := a.count(c)
	if err != nil {
		return costs{}, err
	}
	out := costs{fixed: budget.Fixed{
		Template: bare[prompt.Part{Kind: prompt.Template}] - a.itemTemplate(standIn),
		System:   bare[prompt.Part{Kind: prompt.System}], Question: bare[prompt.Part{Kind: prompt.Question}],
	}}
	for part, n := range bare {
		if part.Kind == prompt.Tools {
			out.fixed.Tools += n
		}
	}
	if len(a.history) == 0 {
		return out, nil
	}
	c.History = a.history
	full, err := a.count(c)
	if err != nil {
		return costs{}, err
	}
	perMessage := a.perMessage(full[prompt.Part{Kind: prompt.Template}] - bare[prompt.Part{Kind: prompt.Template}])
	for i, t := range a.history {
		out.turns = append(out.turns, budget.Turn{Tokens: full[prompt.Part{Kind: prompt.History, Index: i}], Template: perMessage * len(t)})
	}
	return out, nil
}

// perMessage is what the template writes around one message of the history,
// rounded up: packing may count a token too many, never one too few.
func (a *asking) perMessage(template int) int {
	messages := 0
	for _, t := range a.history {
		messages += len(t)
	}
	return template/messages + 1
}

func (a *asking) composition(history []prompt.Turn) prompt.Composition {
	c := prompt.Composition{
		System: strings.TrimSpace(a.cfg.System + "\n\n" + a.req.System), History: history, Question: a.req.Question, Language: language(a.req.Question),
	}
	for _, t := range a.req.ToolResults {
		c.Tools = append(c.Tools, prompt.ToolResult{Name: t.Name, Content: t.Content})
	}
	return c
}

func (a *asking) count(c prompt.Composition) (parts map[prompt.Part]int, err error) {
	segments, err := a.segments(prompt.Compose(c))
	if err != nil {
		return nil, err
	}
	a.skeleton, parts = a.tokenize(segments)
	return parts, nil
}

// segments renders messages by the model's chat template.
func (s *Service) segments(messages []prompt.Message) ([]prompt.Segment, error) {
	segments, err := s.Template.Render(chat.Input{
		Messages: messages, AddGenerationPrompt: true, BOS: s.cfg.BOS, EOS: s.cfg.EOS, Now: time.Now(),
	})
	if err != nil {
		return nil, fmt.Errorf("render the chat template: %w", err)
	}
	return segments, nil
}

// tokenize adds the beginning-of-sequence token that the model wants, unless the
// template wrote it: it stands there exactly once.
func (s *Service) tokenize(segments []prompt.Segment) ([]int32, map[prompt.Part]int) {
	ids, parts := prompt.Tokenize(segments, s.Tokenizer)
	complete := s.Tokenizer.Chat(ids)
	parts[prompt.Part{Kind: prompt.Template}] += len(complete) - len(ids)
	return complete, parts
}

// pack chooses evidence and history.
func (a *asking) pack(ctx context.Context) (err error) {
	_, end := a.rec.Begin(ctx, telemetry.StagePack, "")
	defer func() { end(err) }()
	views := a.views()
	in := a.problem(ctx, views, time.Now())
	a.plan, err = budget.Pack(in)
	switch {
	case err == nil && a.late():
		a.plan, err = a.hurry(in)
	case err == nil && a.plan.Truncate != nil:
		a.plan, err = a.repack(ctx, views, *a.plan.Truncate)
	}
	if err != nil {
		return overBudget(err)
	}
	for _, k := range a.plan.Kept {
		v := views[k.Index]
		if k.Sentences {
			v.chosen.text, v.chosen.sentences = v.short, true
		}
		a.view = append(a.view, v.chosen)
	}
	if err := a.enlarge(ctx, in); err != nil {
		return err
	}
	return a.warmest(ctx)
}

// forms are the two forms in which a hit can be presented.
type forms struct {
	chosen view
	short  string // "" when there is none
	drop   budget.Reason
}

// views lists every candidate: those worth presenting first, best first, then
// those an earlier stage dropped.
func (a *asking) views() []forms {
	out := make([]forms, 0, len(a.hits))
	for i, h := range a.kept {
		f := forms{chosen: view{hit: h, rank: i, text: h.Chunk.Text}}
		if a.detail() != budget.Chunks {
			f.short = sentenceView(a.question, h)
		}
		out = append(out, f)
	}
	for _, d := range a.drops {
		out = append(out, forms{chosen: view{hit: d.Hit, text: d.Hit.Chunk.Text}, drop: budget.Reason(d.Reason)})
	}
	return out
}

// detail resolves auto: a small model reads sentences better than chunks.
func (a *asking) detail() budget.Detail {
	switch a.req.budget().Detail {
	case DetailChunks:
		return budget.Chunks
	case DetailSentences:
		return budget.Sentences
	}
	if a.Generator.Model().Small {
		return budget.Sentences
	}
	return budget.Auto
}

// problem states the packing problem. now is the zero time before the search:
// then nothing is known about the time left.
func (a *asking) problem(ctx context.Context, views []forms, now time.Time) budget.Input {
	b := a.req.budget()
	in := budget.Input{
		Fixed: a.costs.fixed, History: a.costs.turns, Detail: a.detail(),
		Limits: budget.Limits{
			Window: a.Generator.Model().Window, AnswerTokens: a.answerTokens(),
			ContextTokens: or(b.ContextTokens, a.cfg.ContextTokens), MaxChunks: a.maxChunks(),
		},
	}
	if b.TTFTMS != nil && !now.IsZero() {
		in.Limits.TTFTTokens = a.within(ctx, time.Duration(*b.TTFTMS)*time.Millisecond-now.Sub(a.received))
	}
	fence := 0
	for _, f := range views {
		c := budget.Candidate{ChunkID: f.chosen.hit.Chunk.ID, Tokens: a.itemTokens(item(f.chosen.hit, f.chosen.text, 1)), Drop: f.drop}
		if f.short != "" {
			c.Sentences = a.itemTokens(item(f.chosen.hit, f.short, 1))
		}
		if f.drop == "" {
			// Markers of two and three digits and a longer fence cost a little more.
			fence = max(fence, a.itemTemplate(item(f.chosen.hit, f.chosen.text, len(views))))
		}
		in.Candidates = append(in.Candidates, c)
	}
	in.ItemTemplate = func(int) int { return fence }
	return in
}

// smallChunks is how many chunks a small model reads. Of 40 XQuAD questions the
// starter model answered 18, 12 and 11 with one, three and six chunks at a
// repetition penalty of 1.15, and 20, 15 and 11 with one, two and three at 1; the
// choice was made on these same questions.
const smallChunks = 1

// maxChunks is how many chunks are presented at the most.
func (a *asking) maxChunks() int {
	if a.Generator.Model().Small && a.mode() != KindExtracted {
		return or(a.req.MaxChunks, min(smallChunks, a.cfg.MaxChunks))
	}
	return or(a.req.MaxChunks, a.cfg.MaxChunks)
}

func item(h retrieve.Hit, text string, marker int) prompt.Item {
	return prompt.Item{Marker: marker, Title: h.Document.Title, Heading: h.Chunk.Heading, Text: text}
}

func (a *asking) itemTokens(it prompt.Item) int { return a.pieceTokens(it, prompt.Evidence) }

func (a *asking) itemTemplate(it prompt.Item) int { return a.pieceTokens(it, prompt.Template) }

func (a *asking) pieceTokens(it prompt.Item, kind prompt.Kind) int {
	n := 0
	for _, p := range it.Pieces(0) {
		if p.Part.Kind == kind {
			a.scratch = a.Tokenizer.Encode(a.scratch[:0], p.Text)
			n += len(a.scratch)
		}
	}
	return n
}

// repack cuts the only evidence at a sentence so that it fits, marks it, and
// packs again. When not even one sentence fits, the first plan stands.
func (a *asking) repack(ctx context.Context, views []forms, cut budget.Cut) (*budget.Plan, error) {
	f := &views[cut.Index]
	text := a.fit(f.chosen.hit, cut.Room)
	if text == "" {
		return a.plan, nil
	}
	f.chosen.text, f.chosen.truncated, f.short = text, true, ""
	return budget.Pack(a.problem(ctx, views, time.Now()))
}

// fit is the longest run of whole sentences from the start of a chunk that takes
// no more than room tokens with its heading.
func (a *asking) fit(h retrieve.Hit, room int) string {
	best := ""
	for _, s := range sentenceEnds(h.Chunk) {
		text := strings.TrimSpace(h.Chunk.Text[:s])
		if a.itemTokens(item(h, text, 1)) > room {
			break
		}
		best = text
	}
	return best
}

func sentenceEnds(c ingest.Chunk) []int {
	ends := make([]int, 0, len(c.Sentences))
	for _, s := range c.Sentences {
		if s.End <= len(c.Text) {
			ends = append(ends, s.End)
		}
	}
	return ends
}

// render writes the prompt and holds the ledger to what the engine is given.
func (a *asking) render(ctx context.Context) (err error) {
	_, end := a.rec.Begin(ctx, telemetry.StageRender, "")
	defer func() { end(err) }()
	c := a.composition(a.history[a.plan.TurnsDropped:])
	for i, v := range a.view {
		c.Evidence = append(c.Evidence, item(v.hit, v.text, i+1))
	}
	a.messages = prompt.Compose(c)
	segments, err := a.segments(a.messages)
	if err != nil {
		return err
	}
	var parts map[prompt.Part]int
	a.tokens, parts = a.tokenize(segments)
	ledger := a.plan.Measured(parts)
	if err := ledger.Check(len(a.tokens)); err != nil {
		return overBudget(err)
	}
	a.setLedger(ledger)
	if a.req.Explain {
		for _, s := range segments {
			a.res.Explain.Prompt = append(a.res.Explain.Prompt, ExplainPart{componentNames[s.Part.Kind], s.Part.Index, s.Scaffold, s.Text})
		}
	}
	return nil
}

// componentNames are the ledger's words.
var componentNames = [...]string{
	prompt.Template: "template", prompt.System: "system", prompt.History: "history",
	prompt.Tools: "tools", prompt.Question: "question", prompt.Evidence: "evidence",
}

// presented lists the presented hits; hit i has marker i+1.
func (a *asking) presented() []retrieve.Hit {
	out := make([]retrieve.Hit, len(a.view))
	for i, v := range a.view {
		out[i] = v.hit
	}
	return out
}

// candidates lists every retrieved chunk, best first, with what became of it.
func (a *asking) candidates() []Candidate {
	out := []Candidate{}
	dropped := map[int64]string{}
	if a.plan != nil {
		for _, d := range a.plan.Dropped {
			dropped[d.ChunkID] = string(d.Reason)
		}
	}
	for _, h := range a.kept {
		out = append(out, candidate(h, dropped[h.Chunk.ID]))
	}
	for _, d := range a.drops {
		out = append(out, candidate(d.Hit, string(d.Reason)))
	}
	return out
}

func candidate(h retrieve.Hit, dropped string) Candidate {
	s := source(h, 0)
	s.Text = h.Chunk.Text
	return Candidate{Source: s, Scores: h.Scores, Dropped: dropped}
}
