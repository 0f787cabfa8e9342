package answer

import (
	"context"
	"fmt"
	"strings"
	"time"

	"ragd/prompt"
	"ragd/prompt/budget"
	"ragd/rerank"
	"ragd/retrieve"
	"ragd/telemetry"
)

// asking is one question on its way.
type asking struct {
	*Service
	req Request
	rec *telemetry.Request
	// received is when the request came.
	received time.Time
	sink     Sink
	res      *Result

	search   string // what is searched for: the question, or its rewriting
	question []float32
	hits     []retrieve.Hit // as retrieved
	kept     []retrieve.Hit // worth presenting, best first
	drops    []rerank.Drop
	reranked rerank.Report
	history  []prompt.Turn // oldest first
	costs    costs
	plan     *budget.Plan
	view     []view           // presented, in the order of the prompt
	messages []prompt.Message // of the prompt
	tokens   []int32
	scratch  []int32
	skeleton []int32       // the prompt with a stand-in for the evidence
	promised time.Duration // predicted from submission to the first token
	due      time.Time     // when it is to be there; zero when no time was asked for
	hurried  bool          // the time asked for is too short to read any evidence

	submitted bool    // the engine read the prompt, or began to
	machine   Machine // its time

	text   strings.Builder // the answer so far
	opened bool
}

// run is the question road.
func (a *asking) run(ctx context.Context) error {
	if err := a.measure(ctx); err != nil {
		return err
	}
	if err := a.findEvidence(ctx); err != nil {
		return err
	}
	if err := a.pack(ctx); err != nil {
		return err
	}
	if len(a.view) == 0 {
		a.refuse()
		return nil
	}
	mode := a.mode()
	if mode == KindExtracted {
		a.answerExtracted()
		return nil
	}
	return a.answerGenerated(ctx, mode)
}

// findEvidence is embed → retrieve → rerank.
func (a *asking) findEvidence(ctx context.Context) error {
	q, err := a.retrieve(ctx)
	if err != nil {
		return err
	}
	a.res.RetrievedChunks = len(a.hits)
	ctx, end := a.rec.Begin(ctx, telemetry.StageRerank, a.Reranker.Name())
	ranking, err := a.Reranker.Rerank(ctx, q, a.hits)
	end(err)
	a.kept, a.drops, a.reranked = ranking.Kept, ranking.Drops, ranking.Report
	a.listRetrieved()
	return err
}

// listRetrieved lists the candidates in the order of the search, with the scores
// of the reranker where it came that far.
func (a *asking) listRetrieved() {
	scores := make(map[int64]float32, len(a.hits))
	for _, h := range a.kept {
		scores[h.Chunk.ID] = h.Scores.Rerank
	}
	for _, d := range a.drops {
		scores[d.Hit.Chunk.ID] = d.Hit.Scores.Rerank
	}
	for _, h := range a.hits {
		h.Scores.Rerank = scores[h.Chunk.ID]
		a.res.Sources.Retrieved = append(a.res.Sources.Retrieved, source(h, 0))
	}
}

func (a *asking) retrieve(ctx context.Context) (q retrieve.Query, err error) {
	ctx, end := a.rec.Begin(ctx, telemetry.StageRetrieval, a.req.label())
	defer func() { end(err) }()
	if a.search, err = a.standalone(ctx); err != nil {
		return q, err
	}
	vector, states, err := a.embed(ctx, a.search)
	if err != nil {
		return q, err
	}
	if a.question, err = a.support(ctx, vector); err != nil {
		return q, err
	}
	if b, ok := a.Embedder.(retrieve.BoundedEmbedder); ok {
		a.res.Usage.UnreadTokens = b.Unread(a.search)
	}
	q = a.query(vector)
	q.States = states
	a.hits, err = a.Retriever.Retrieve(ctx, q)
	if err != nil {
		return q, fmt.Errorf("retrieve: %w", err)
	}
	return q, nil
}

// stages are the parts of a search as the ledger of time has them.
var stages = map[retrieve.Part]telemetry.Stage{
	retrieve.Dense: telemetry.StageDense, retrieve.Lexical: telemetry.StageLexical, retrieve.Fuse: telemetry.StageFuse,
}

// observe measures a part of the search.
func (a *asking) observe(ctx context.Context, p retrieve.Part) (context.Context, func(error)) {
	return a.rec.Begin(ctx, stages[p], "")
}

// embed encodes a question, with the states of its tokens where the embedder gives any.
func (a *asking) embed(ctx context.Context, text string) (v []float32, states retrieve.States, err error) {
	ctx, end := a.rec.Begin(ctx, telemetry.StageEmbed, a.Embedder.Model())
	if e, ok := a.Embedder.(retrieve.StateEmbedder); ok {
		v, states, _, err = e.EmbedQueryStates(ctx, text)
	} else {
		v, _, err = a.Embedder.EmbedQuery(ctx, text)
	}
	end(err)
	if err != nil {
		return nil, states, fmt.Errorf("embed the question: %w", err)
	}
	return v, states, nil
}

func (a *asking) query(vector []float32) retrieve.Query {
	q := retrieve.Query{
		Text: a.search, Vector: vector, Model: a.Embedder.Model(),
		Collections: a.req.names(), Limit: or(a.req.TopK, a.cfg.TopK),
		Observe: a.observe,
	}
	if f := a.req.Filters; f != nil {
		q.Filters = retrieve.Filters{PathPrefix: f.PathPrefix, Metadata: map[string][]string{}}
		for k, v := range f.Metadata {
			q.Filters.Metadata[k] = v
		}
	}
	return q
}

// mode is what kind of answer this question gets (DESIGN §8).
func (a *asking) mode() string {
	m := a.Generator.Model()
	switch a.req.AnswerMode {
	case ModeGenerate:
		return KindGenerated
	case ModeExtract:
		return KindExtracted
	}
	if a.req.ResponseFormat.constrained() {
		return KindGenerated
	}
	switch {
	case !m.Speaks(language(a.req.Question)), a.hurried:
		return KindExtracted
	case m.Small:
		return KindBoth
	}
	return KindGenerated
}

// refuse answers that the documents do not say.
func (a *asking) refuse() {
	a.res.Refused, a.res.Kind, a.res.FinishReason = true, KindExtracted, "stop"
	a.setLedger(a.unprefilled())
	a.open(0)
	a.say(a.refusal())
	a.res.Answer = a.text.String()
}

// answerExtracted quotes the documents and runs no model.
func (a *asking) answerExtracted() {
	a.res.Kind, a.res.FinishReason = KindExtracted, "stop"
	a.setLedger(a.unprefilled())
	a.open(0)
	a.quote()
	a.finish()
}

// unprefilled is the plan's ledger for an answer that the engine had no part in:
// it was given no tokens, so every component is 0.
func (a *asking) unprefilled() budget.Ledger { return a.plan.Measured(nil) }

// setLedger puts the ledger into the result. Its lists are never null in JSON.
func (a *asking) setLedger(l budget.Ledger) {
	if l.Evidence == nil {
		l.Evidence = []budget.Item{}
	}
	if l.Dropped == nil {
		l.Dropped = []budget.Dropped{}
	}
	a.res.Usage.Ledger = l
	a.res.Usage.InputTokens = l.Input()
	a.res.UsedChunks = len(a.view)
	for i, v := range a.view {
		a.res.Sources.Presented = append(a.res.Sources.Presented, v.source(i+1))
		l.Evidence[i].Joined = v.joined
	}
	if a.req.Explain {
		a.explain()
	}
}

// refusal says that the documents do not answer, or that there are none: a search
// without filters finds the nearest chunks of whatever is there.
func (a *asking) refusal() string {
	korean := language(a.req.Question) == "ko"
	empty := len(a.hits) == 0 && a.req.Filters == nil
	first := a.req.names()[0]
	switch {
	case empty && korean:
		return fmt.Sprintf("컬렉션 %q에는 아직 문서가 없습니다. 다음 명령으로 채우세요: %s", a.req.label(), ingestCommand(first))
	case empty:
		return fmt.Sprintf("The collection %q holds no documents. Fill it with: %s", a.req.label(), ingestCommand(first))
	case korean:
		return "문서에서 이 질문에 대한 근거를 찾지 못했습니다."
	}
	return "The documents hold no evidence for this question."
}

func or(v *int, fallback int) int {
	if v == nil {
		return fallback
	}
	return *v
}
