package app

import (
	"context"
	"fmt"
	"time"

	"ragd/inference/gguf"
	"ragd/inference/tokenizer"
	"ragd/internal/answer"
	"ragd/internal/eval"
	"ragd/internal/tenant"
	"ragd/retrieve/lexical"
	"ragd/retrieve/vector"
)

// EvalParts are the stages of this program's question road, as they are configured.
func (a *App) EvalParts(ctx context.Context) (eval.Parts, error) {
	fused, err := a.retriever(tenant.Default)
	if err != nil {
		return eval.Parts{}, err
	}
	reranker, err := a.openReranker(ctx)
	if err != nil {
		return eval.Parts{}, err
	}
	late, err := a.openLate()
	if err != nil {
		return eval.Parts{}, err
	}
	count, err := a.answerTokens(ctx)
	if err != nil {
		return eval.Parts{}, err
	}
	parts := eval.Parts{
		Embedder: lateEmbedder{a.embed}, Late: late, States: a.keepsStates(), Store: a.store, Words: lexical.New(a.pool, tenant.Default, lexical.Analyzer{}),
		Dense: vector.New(a.pool, tenant.Default, vector.Config{ExactBelow: a.cfg.Retrieve.ExactBelow}),
		Fused: fused, Reranker: reranker, Reranked: a.cfg.Retrieve.TopK, Inside: eval.Inside{Pool: a.pool, Tenant: tenant.Default},
		Context: eval.Context{Count: count, Tokens: a.cfg.Prompt.ContextTokens, Chunks: a.cfg.Prompt.MaxChunks},
	}
	if a.ask != nil {
		parts.Asker = asker{a.ask}
	}
	return parts, nil
}

// Home is the data folder.
func (a *App) Home() string { return a.home }

// answerTokens counts texts in tokens of the answer model, of which it reads the
// tokenizer alone.
func (a *App) answerTokens(ctx context.Context) (func(string) int, error) {
	path, err := a.ensure(ctx, a.cfg.Models.Answer)
	if err != nil {
		return nil, err
	}
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return func(text string) int { return len(tok.Encode(nil, text)) }, nil
}

// asker puts the questions of a judged set to the question road.
type asker struct{ *answer.Service }

// Ask implements eval.Asker.
func (s asker) Ask(ctx context.Context, q eval.Question) (eval.Reply, error) {
	req := answer.Request{Question: q.Text, Collection: q.Collection, AnswerMode: q.Mode}
	for _, t := range q.History {
		req.History = append(req.History, answer.Turn{Role: t.Role, Content: t.Text})
	}
	res, err := s.Service.Ask(ctx, time.Now(), req, noSink{})
	if err != nil {
		return eval.Reply{}, err
	}
	out := eval.Reply{Text: res.Answer, Kind: res.Kind, Refused: res.Refused, InputTokens: res.Usage.InputTokens, OutputTokens: res.Usage.OutputTokens}
	for _, c := range res.Citations {
		out.Cited = append(out.Cited, c.Document)
	}
	return out, nil
}

// noSink takes an answer when it is complete.
type noSink struct{}

func (noSink) Begun(string)             {}
func (noSink) Queued(int)               {}
func (noSink) Sources(answer.Sources)   {}
func (noSink) Delta(string)             {}
func (noSink) Citation(answer.Citation) {}
