package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"ragd/inference/encode"
	"ragd/ingest"
	"ragd/ingest/chunk"
	"ragd/internal/answer"
	"ragd/internal/httpapi"
	"ragd/rerank"
)

// textEncoder is the embedding model as callers of the interface use it.
type textEncoder struct{ *embedder }

var _ answer.TextEncoder = textEncoder{}

// CountText counts a text as a passage.
func (e textEncoder) CountText(text string) int { return e.CountPassage(text) }

// EncodeTexts encodes queries one by one, ahead of passages; passages in batches,
// which give way to questions.
func (e textEncoder) EncodeTexts(ctx context.Context, texts []string, query bool) ([]answer.EncodedText, error) {
	out := make([]answer.EncodedText, len(texts))
	if !query {
		list, err := e.Encoder.EmbedPassages(ctx, texts)
		for i, v := range list {
			out[i] = answer.EncodedText{Vector: v.Vector, Tokens: v.Tokens}
		}
		return out, textFault(err, 0)
	}
	for i, text := range texts {
		v, tokens, err := e.Encoder.EmbedQuery(ctx, text)
		if err != nil {
			return nil, textFault(err, i)
		}
		out[i] = answer.EncodedText{Vector: v, Tokens: tokens}
	}
	return out, nil
}

// textFault says which text is wrong: the first of those an error joins, counted
// from the given index.
func textFault(err error, from int) error {
	var text *encode.TextError
	switch {
	case !errors.As(err, &text):
		return unavailable(err)
	case errors.Is(text, encode.ErrTooLong):
		return &answer.TextFault{Index: from + text.Index, Reason: fmt.Sprintf("%d tokens, the model takes at most %d", text.Tokens, text.Max)}
	case errors.Is(text, encode.ErrBlank):
		return &answer.TextFault{Index: from + text.Index, Reason: "is empty"}
	}
	return err
}

// sentenceScorer rates a text by its best sentence, as questions are reranked by
// default.
type sentenceScorer struct{ embed *embedder }

// Model is the scorer's name.
func (sentenceScorer) Model() string { return rerank.BestSentence{}.Name() }

// ScoreTexts encodes the sentences of each text, those too long for the model in
// parts, and takes the best cosine.
func (s sentenceScorer) ScoreTexts(ctx context.Context, query string, texts []string) ([]answer.TextScore, error) {
	q, read, err := s.embed.embedParts(s.embed.parts(query), func(part string) ([]float32, int, error) { return s.embed.Encoder.EmbedQuery(ctx, part) })
	if err != nil {
		return nil, err
	}
	var parts []string
	var of []int // the text that each part is of
	for i, text := range texts {
		for _, span := range chunk.Sentences(text) {
			for _, p := range s.embed.parts(text[span.Start:span.End]) {
				if strings.TrimSpace(p) != "" {
					parts, of = append(parts, p), append(of, i)
				}
			}
		}
	}
	list, err := s.embed.Encoder.EmbedPassages(ctx, parts)
	var text *encode.TextError
	if err != nil && !errors.As(err, &text) {
		return nil, unavailable(err)
	}
	out := make([]answer.TextScore, len(texts))
	for i := range out {
		out[i].Score = -1
	}
	out[0].Tokens = read
	for j, v := range list {
		if v.Err != nil {
			continue // nothing visible in it
		}
		t := &out[of[j]]
		t.Score = max(t.Score, rerank.Cosine(q, v.Vector))
		t.Tokens += v.Tokens
	}
	return out, nil
}

// lateScorer rates a text by late interaction with the query.
type lateScorer struct{ embed lateEmbedder }

// Model is the scorer's name.
func (lateScorer) Model() string { return (*rerank.Late)(nil).Name() }

// ScoreTexts encodes the texts, those too long for the model in parts whose states are
// put together.
func (s lateScorer) ScoreTexts(ctx context.Context, query string, texts []string) ([]answer.TextScore, error) {
	_, states, read, err := s.embed.partStates(ctx, s.embed.parts(query))
	if err != nil {
		return nil, err
	}
	out, pool := make([]answer.TextScore, len(texts)), make([]ingest.States, len(texts))
	for i, text := range texts {
		parts := s.embed.parts(text)
		list, err := s.embed.Encoder.EmbedPassageStates(ctx, parts, slices.Repeat([]bool{true}, len(parts)), s.embed.MaxTokens())
		var fault *encode.TextError
		if err != nil && !errors.As(err, &fault) {
			return nil, unavailable(err)
		}
		for _, v := range list {
			if v.Err != nil {
				continue // nothing visible in it
			}
			out[i].Tokens += v.Tokens
			pool[i].Scales, pool[i].Values = append(pool[i].Scales, v.States.Scales...), append(pool[i].Values, v.States.Values...)
		}
	}
	out[0].Tokens += read
	if len(states.Weights) == 0 {
		return out, nil
	}
	sim, err := rerank.NewMaxSim(states, s.embed.Dim(), pool, rowProducts)
	if err != nil {
		return nil, err
	}
	for i := range pool {
		if out[i].Score = -1; pool[i].Tokens() == 0 {
			continue
		}
		if out[i].Score, err = sim.Score(&pool[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// crossScorer rates a text by reading it with the query.
type crossScorer struct{ cross *encode.CrossEncoder }

// Model is the model's name.
func (s crossScorer) Model() string { return s.cross.Model() }

// ScoreTexts scores every text, however long it takes.
func (s crossScorer) ScoreTexts(ctx context.Context, query string, texts []string) ([]answer.TextScore, error) {
	list, err := s.cross.ScorePairs(ctx, query, texts)
	if errors.Is(err, encode.ErrTooLong) {
		return nil, &answer.Error{Code: answer.Invalid, Field: "query", Message: fmt.Sprintf("query: too long for the reranker, which takes %d tokens of query and text together", s.cross.MaxTokens())}
	}
	if err != nil {
		return nil, unavailable(err)
	}
	out := make([]answer.TextScore, len(list))
	for i, v := range list {
		out[i] = answer.TextScore{Score: v.Score, Tokens: v.Tokens, Cut: v.Cut}
	}
	return out, nil
}

// models are what runs in this process, by what callers use it for.
func (a *App) models() []httpapi.Model {
	list := []httpapi.Model{
		{ID: a.ask.Generator.Model().Name, Role: httpapi.RoleAnswers},
		{ID: modelName(a.cfg.Models.Embedding), Role: httpapi.RoleEmbeddings},
	}
	if a.scorer != nil {
		list = append(list, httpapi.Model{ID: a.scorer.Model(), Role: httpapi.RoleRerank})
	}
	return list
}
