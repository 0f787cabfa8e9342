package app

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"time"

	"ragd/inference/engine"
	"ragd/inference/gguf"
	"ragd/inference/kvcache"
	"ragd/inference/model"
	"ragd/inference/sample"
	"ragd/inference/tokenizer"
	"ragd/internal/answer"
	"ragd/internal/tenant"
	"ragd/prompt/chat"
	"ragd/retrieve"
	"ragd/retrieve/fuse"
	"ragd/retrieve/hybrid"
	"ragd/retrieve/lexical"
	"ragd/retrieve/vector"
	"ragd/telemetry"
)

// openAnswers loads the answer model and puts the question road together.
func (a *App) openAnswers(ctx context.Context) error {
	reranker, err := a.openReranker(ctx)
	if err != nil {
		return err
	}
	m, err := a.answerModel(ctx)
	if err != nil {
		return err
	}
	if _, err := a.retriever(tenant.Default); err != nil {
		return err
	}
	settings := a.answerConfig(m)
	if settings.Prices, err = a.cfg.Cost.Prices(); err != nil {
		return err
	}
	deps := answer.Deps{
		Embedder: a.questionEmbedder(), Retriever: tenantRetriever{a}, Reranker: reranker, Template: m.template, Tokenizer: m.counter, Generator: m.generator, Telemetry: a.tel,
		Texts: answer.Texts{Encoder: textEncoder{a.embed}, Scorer: a.scorer, Most: a.cfg.Inference.MaxQueue},
	}
	if a.cfg.Prompt.JoinNeighbours {
		deps.Neighbours = a.store
	}
	a.ask, err = answer.New(deps, settings)
	return err
}

// retriever searches a tenant's documents by meaning and by words.
func (a *App) retriever(tenant string) (retrieve.Retriever, error) {
	r := a.cfg.Retrieve
	return hybrid.New(a.pool,
		vector.New(a.pool, tenant, vector.Config{ExactBelow: r.ExactBelow}),
		lexical.New(a.pool, tenant, lexical.Analyzer{}),
		hybrid.Config{Candidates: r.Candidates, Method: fuse.Method(r.Fusion), DenseWeight: float32(r.DenseWeight)})
}

// tenantRetriever searches the documents of whoever asks.
type tenantRetriever struct{ a *App }

// Retrieve implements retrieve.Retriever.
func (t tenantRetriever) Retrieve(ctx context.Context, q retrieve.Query) ([]retrieve.Hit, error) {
	r, err := t.a.retriever(tenant.Of(ctx))
	if err != nil {
		return nil, err
	}
	return r.Retrieve(ctx, q)
}

// minConfidence is the mean log probability (natural) of a generated answer
// under which its evidence is quoted beside it: a mean probability of a half.
var minConfidence = math.Log(0.5)

func (a *App) answerConfig(m *answerModel) answer.Config {
	return answer.Config{
		System: a.cfg.Prompt.System, TopK: a.cfg.Retrieve.TopK, MaxChunks: a.cfg.Prompt.MaxChunks,
		ContextTokens: a.cfg.Prompt.ContextTokens, AnswerTokens: a.cfg.Prompt.AnswerTokens,
		BOS: m.bos, EOS: m.eos, MinConfidence: minConfidence,
		Rewrite: a.cfg.Retrieve.Rewrite,
	}
}

func spelling(tokens []string, id int32) string {
	if id < 0 || int(id) >= len(tokens) {
		return ""
	}
	return tokens[id]
}

// chatTokenizer is the tokenizer as the question road sees it.
type chatTokenizer struct{ tokenizer.Tokenizer }

func (t chatTokenizer) Chat(ids []int32) []int32 { return tokenizer.Chat(t.Tokenizer, ids) }

// answerModel is a decoder with its tokenizer and chat template.
type answerModel struct {
	generator answer.Generator
	counter   answer.Tokenizer
	template  *chat.Template
	bos, eos  string // their spellings
}

// answerModel is the model of this process, or the remote server's.
func (a *App) answerModel(ctx context.Context) (*answerModel, error) {
	if a.cfg.Inference.Remote.URL != "" {
		return a.openRemote(ctx)
	}
	path, err := a.ensure(ctx, a.cfg.Models.Answer)
	if err != nil {
		return nil, err
	}
	m, err := a.loadAnswerModel(ctx, path)
	if err != nil {
		return nil, err
	}
	a.onClose(a.gen.engine.Close)
	return m, a.tel.WatchEngine(a.gen.stats)
}

func (a *App) loadAnswerModel(ctx context.Context, path string) (*answerModel, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	// The weights are copied into the backend, so the file is not needed later.
	defer f.Close()
	m, tok, err := chatModel(f, path)
	if err != nil {
		return nil, err
	}
	e, dec, err := a.startEngine(ctx, f, tok)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	a.gen = &generator{forms: newForms(tok, dec.Vocab), engine: e, info: modelInfo(f, modelName(a.cfg.Models.Answer), dec, e.Window()), weights: dec.Weights}
	m.generator = a.gen
	return m, nil
}

// chatModel reads tokenizer and chat template of a model.
func chatModel(f *gguf.File, path string) (*answerModel, tokenizer.Tokenizer, error) {
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	source, ok := f.String("tokenizer.chat_template")
	if !ok {
		return nil, nil, fmt.Errorf("%s: the model has no chat template, so it is not made for answering", path)
	}
	m := &answerModel{counter: chatTokenizer{tok}}
	if m.template, err = chat.Parse(source); err != nil {
		return nil, nil, fmt.Errorf("%s: chat template: %w", path, err)
	}
	tokens, _ := f.Strings("tokenizer.ggml.tokens")
	special := tok.Special()
	m.bos, m.eos = spelling(tokens, special.BOS), spelling(tokens, special.EOS)
	return m, tok, nil
}

func (a *App) startEngine(ctx context.Context, f *gguf.File, tok tokenizer.Tokenizer) (*engine.Engine, model.Config, error) {
	i := a.cfg.Inference
	cache := CacheType(i)
	blocks := kvcache.BlocksOf(i.KVCacheTokens)
	load := model.LoadConfig{Blocks: blocks, StepTokens: i.StepTokens}
	ops, err := a.answerBackends(f, &load)
	if err != nil {
		return nil, model.Config{}, err
	}
	load.Slots = a.offloadSlots(ops)
	dec, err := model.LoadDecoder(ctx, f, ops, load)
	if err != nil {
		return nil, model.Config{}, errors.Join(roomHint(err), closeBackends(ops, load.Before))
	}
	c := dec.Config()
	perToken := c.KVBytesPerToken(cache.ValueBytes())
	a.log.Info("answer model is loaded", "model", c.Name, "backend", ops.Name(), "layers", placesText(dec.Places()), "weights_bytes", c.Weights,
		"kv_cache_type", i.KVCacheType, "kv_bytes_per_token", perToken, "kv_bytes", perToken*float64(blocks*model.BlockTokens))
	e, err := engine.New(dec, tok, engine.Config{
		MaxRunning: i.MaxRunning, MaxQueue: i.MaxQueue, StepTokens: i.StepTokens, PieceTokens: i.PieceTokens,
		NoPrefixCache: i.NoPrefixCache, NoKVCache: i.NoKVCache, NoLookup: i.NoLookup, NoPreemption: i.NoPreemption,
		MaxGap: time.Duration(i.MaxGapMS) * time.Millisecond,
	})
	if err != nil {
		return nil, c, errors.Join(err, dec.Close())
	}
	return e, c, nil
}

// smallWeights is the size under which a model counts as small: about 0.5 G
// parameters at 4 bits.
const smallWeights = 300 << 20

func modelInfo(f *gguf.File, name string, c model.Config, window int) answer.ModelInfo {
	languages, _ := f.Strings("general.languages")
	return answer.ModelInfo{Name: name, Window: window, Small: c.Weights < smallWeights, Languages: languages}
}

// generator is the engine as the question road sees it.
type generator struct {
	*forms
	engine  *engine.Engine
	info    answer.ModelInfo
	weights int64 // bytes
}

var (
	_ answer.Generator  = (*generator)(nil)
	_ answer.Forecaster = (*generator)(nil)
)

func (g *generator) Model() answer.ModelInfo { return g.info }

func (g *generator) Pace() answer.Pace {
	s := g.engine.Stats()
	return answer.Pace{Prefill: s.PrefillRate, Wait: s.Wait}
}

// FirstToken implements answer.Forecaster.
func (g *generator) FirstToken(prompt, warm int, by time.Time) time.Duration {
	return g.engine.FirstToken(prompt, warm, by)
}

// Warm implements answer.Forecaster.
func (g *generator) Warm(ctx context.Context, tokens []int32) int {
	return g.engine.Warm(tenant.Of(ctx), tokens)
}

func (g *generator) stats() telemetry.EngineStats {
	s := g.engine.Stats()
	return telemetry.EngineStats{
		Queued: s.Queued, Running: s.Running, BlocksUsed: s.BlocksUsed, BlocksFree: s.BlocksFree, PrefixHitTokens: s.CachedTokens,
		Preemptions: s.Preemptions, RecomputedTokens: s.RecomputedTokens,
		PrefillRate: s.PrefillRate, DecodeStep: s.DecodeStep, Weights: g.weights,
	}
}

// Generate runs one request and turns the engine's events into the road's.
func (g *generator) Generate(ctx context.Context, req answer.Generation, emit func(answer.Event)) (answer.Generated, error) {
	grammar, err := g.grammar(req.Format)
	if err != nil {
		return answer.Generated{}, err
	}
	p := req.Sampling
	stream, err := g.engine.Submit(ctx, engine.Request{
		Tokens: req.Tokens, MaxTokens: req.MaxTokens, Stop: req.Stop, Confidence: req.Confidence, Tenant: tenant.Of(ctx),
		FirstTokenBy: req.FirstTokenBy,
		Sampling: sample.Params{
			Temperature: float32(p.Temperature), TopP: float32(p.TopP), MinP: float32(p.MinP),
			RepetitionPenalty: float32(p.RepetitionPenalty), TopK: p.TopK, Seed: p.Seed, Grammar: grammar,
		},
	})
	if err != nil {
		return answer.Generated{}, submitError(err)
	}
	return follow(ctx, stream, emit)
}

// follow turns the events of a stream into the road's.
func follow(ctx context.Context, stream *engine.Stream, emit func(answer.Event)) (answer.Generated, error) {
	defer stream.Close()
	for {
		// The engine itself watches ctx and always ends the stream, so the last
		// event is waited for even when the caller is gone: it has the figures.
		e, err := stream.Next(context.WithoutCancel(ctx))
		if err != nil {
			return answer.Generated{}, unexpectedEnd(err)
		}
		switch e := e.(type) {
		case engine.Queued:
			emit(answer.Event{Queued: true, Position: e.Position})
		case engine.Delta:
			if e.Text != "" {
				emit(answer.Event{Text: e.Text})
			}
		case engine.Done:
			out := generated(string(e.Reason), e.Usage, e.Times)
			out.MeanLogProb = e.Confidence.Mean
			if e.Reason == engine.ReasonCancelled {
				return out, context.Cause(ctx)
			}
			return out, nil
		case engine.Failed:
			return generated("", e.Usage, e.Times), failure(e.Err)
		}
	}
}

func generated(reason string, u engine.Usage, t engine.Times) answer.Generated {
	return answer.Generated{
		FinishReason: reason, InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CachedTokens: u.CachedTokens,
		Machine: answer.Machine{Prefill: u.PrefillTime, Decode: u.DecodeTime},
		Times: telemetry.EngineTimes{
			Submitted: t.Submitted, Scheduled: t.Scheduled, FirstToken: t.FirstToken, Last: t.Last, OutputTokens: u.OutputTokens,
			Preemptions: u.Preemptions, Preempted: t.Preempted,
		},
	}
}

func unexpectedEnd(err error) error {
	if errors.Is(err, io.EOF) {
		return errors.New("the engine's stream ended without a last event")
	}
	return err
}

// failure gives the failure of an answer its code. Where a step panicked, the stack goes
// with it to the log.
func failure(err error) error {
	var fault *engine.PanicError
	switch {
	case errors.Is(err, engine.ErrClosed):
		return &answer.Error{Code: answer.Unavailable, Message: "the server is shutting down", Err: err}
	case errors.As(err, &fault):
		return fmt.Errorf("%w\n%s", err, fault.Stack)
	}
	return unavailable(remoteFailure(err))
}

// submitError gives the engine's refusals their codes.
func submitError(err error) error {
	var full *engine.QueueFullError
	var long *engine.TooLongError
	switch {
	case errors.As(err, &full):
		return &answer.Error{Code: answer.Busy, Message: full.Error(), RetryAfter: max(full.Wait, minRetry)}
	case errors.As(err, &long):
		return &answer.Error{Code: answer.OverBudget, Message: long.Error()}
	case errors.Is(err, engine.ErrClosed):
		return failure(err)
	case errors.Is(err, engine.ErrInvalid), errors.Is(err, sample.ErrParams):
		return &answer.Error{Code: answer.Invalid, Message: err.Error()}
	}
	return err
}
