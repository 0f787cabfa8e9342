package app

import (
	"context"
	"errors"
	"fmt"

	"ragd/inference/cpu"
	"ragd/inference/encode"
	"ragd/internal/config"
	"ragd/rerank"
)

// openReranker makes the reranker that the settings name. A cross-encoder that is
// none, or is broken, is an error.
func (a *App) openReranker(ctx context.Context) (*rerank.Reranker, error) {
	cfg := a.rerankConfig()
	switch a.cfg.Rerank.Scorer {
	case config.ScoreNone:
		return rerank.New(rerank.None{}, cfg)
	case config.ScoreLate:
		a.scorer = lateScorer{lateEmbedder{a.embed}}
		return a.openLate()
	case config.ScoreCross:
		cross, err := a.openCross(ctx)
		if err != nil {
			return nil, fmt.Errorf("reranker: %w", err)
		}
		cfg.Alone = true
		a.scorer = crossScorer{cross}
		within, err := rerank.NewCross(pairScorer{cross}, a.cfg.Rerank.Timeout)
		if err != nil {
			return nil, err
		}
		return rerank.New(within, cfg)
	default:
		a.scorer = sentenceScorer{a.embed}
		return rerank.New(rerank.BestSentence{}, cfg)
	}
}

func (a *App) rerankConfig() rerank.Config {
	cfg := rerank.DefaultConfig()
	cfg.MinEvidence, cfg.MinChunk = float32(a.cfg.Retrieve.MinScore), float32(a.cfg.Retrieve.MinChunkScore)
	cfg.MinWords = float32(a.cfg.Retrieve.MinWords)
	cfg.DenseWeight = float32(a.cfg.Retrieve.DenseWeight)
	return cfg
}

func (a *App) openCross(ctx context.Context) (*encode.CrossEncoder, error) {
	path, err := a.ensure(ctx, a.cfg.Models.Rerank)
	if err != nil {
		return nil, err
	}
	ops, err := a.newBackend(cpu.Config{Pool: a.threads})
	if err != nil {
		return nil, err
	}
	e, err := encode.OpenCross(ctx, path, ops, encode.Config{})
	if err != nil {
		return nil, errors.Join(err, ops.Close())
	}
	a.onClose(closing(e))
	a.log.Info("reranker is loaded", "model", e.Model(), "max_tokens", e.MaxTokens(), "timeout", a.cfg.Rerank.Timeout)
	if !e.Whole() {
		a.log.Warn("the reranker's file holds no dense layer before its scores: conversion to GGUF drops BERT's, and the scores are not the original model's; use its Hugging Face folder", "path", path)
	}
	return e, nil
}

// pairScorer is the cross-encoder as the rerank stage sees it.
type pairScorer struct{ *encode.CrossEncoder }

var _ rerank.PairScorer = pairScorer{}

// ScorePairs scores passages.
func (p pairScorer) ScorePairs(ctx context.Context, question string, passages []string) ([]rerank.PairScore, error) {
	list, err := p.CrossEncoder.ScorePairs(ctx, question, passages)
	if errors.Is(err, encode.ErrTooLong) {
		return nil, fmt.Errorf("%w: %w", rerank.ErrQuestion, err)
	}
	if err != nil {
		return nil, err
	}
	out := make([]rerank.PairScore, len(list))
	for i, s := range list {
		out[i] = rerank.PairScore{Score: s.Score, Cut: s.Cut}
	}
	return out, nil
}
