package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"ragd/inference/kvcache"
	"ragd/inference/model"
	"ragd/inference/schedule"
	"ragd/inference/tokenizer"
)

// Config has the tunables of an engine; a zero number takes the default.
type Config struct {
	// MaxRunning is how many requests run at once (8).
	MaxRunning int
	// MaxQueue is how many may wait beyond the places of MaxRunning (64).
	MaxQueue int
	// StepTokens is the most tokens of one step, at least MaxRunning (256).
	StepTokens int
	// PieceTokens is the longest piece of one prompt in a step (128). A cancel
	// waits for at most one step, so it bounds that wait too.
	PieceTokens int
	// MaxGap is how long a step may take that runs a piece of a prompt while
	// others decode: pieces become as short as that asks for. 0 means 2.5 times a
	// step that only decodes.
	MaxGap time.Duration
	// NoPrefixCache runs every prompt from its first token.
	NoPrefixCache bool
	// NoKVCache runs the whole sequence again for every token, to measure what
	// the cache gives. It implies NoPrefixCache.
	NoKVCache bool
	// NoLookup drafts nothing: every token takes a step of its own.
	NoLookup bool
	// NoPreemption starts a request only when the blocks of its longest answer are free,
	// so that no answer ever pauses for lack of them, at the price of a longer queue.
	NoPreemption bool
}

func (c Config) withDefaults() (Config, error) {
	for _, f := range []struct {
		name     string
		value    *int
		fallback int
	}{
		{"MaxRunning", &c.MaxRunning, 8},
		{"MaxQueue", &c.MaxQueue, 64},
		{"StepTokens", &c.StepTokens, max(256, c.MaxRunning)},
		{"PieceTokens", &c.PieceTokens, 128},
	} {
		if *f.value == 0 {
			*f.value = f.fallback
		}
		if *f.value < 0 {
			return c, fmt.Errorf("engine: %s is %d, it must be positive", f.name, *f.value)
		}
	}
	if c.MaxGap < 0 {
		return c, fmt.Errorf("engine: MaxGap is %v, it must not be negative", c.MaxGap)
	}
	if c.StepTokens < c.MaxRunning {
		return c, fmt.Errorf("engine: StepTokens is %d, it must be at least MaxRunning, %d", c.StepTokens, c.MaxRunning)
	}
	return c, nil
}

// phase is how far Close has come.
type phase int

const (
	open     phase = iota
	draining       // nothing new starts
	stopping       // what runs is cancelled
)

// Engine runs requests on one decoder. Its methods are safe for concurrent use.
type Engine struct {
	dec     model.Decoder
	best    model.BestDecoder // dec, where it can tell the largest logits; else nil
	mover   model.Offloader   // dec, where it keeps blocks in host memory; else nil
	tok     tokenizer.Tokenizer
	limits  schedule.Limits
	queue   int // MaxQueue
	gap     time.Duration
	noKV    bool
	lookup  bool
	reserve bool // blocks for the longest answer from the start
	vocab   int
	window  int
	ends    []int32

	wake   chan struct{} // holds a value when there is news for an idle loop
	done   chan struct{} // closed when the loop has returned
	closed error         // of the decoder; set before done is closed

	mu      sync.Mutex
	phase   phase
	waiting []*sequence // those that were preempted as they started, then in the order of arrival
	fair    schedule.Fair
	stats   Stats
	pace    pace
	outlook outlook

	loop loop
}

// New starts an engine. It owns dec from then on and closes it at the end; when
// New fails, dec stays with the caller.
func New(dec model.Decoder, tok tokenizer.Tokenizer, cfg Config) (*Engine, error) {
	e, err := build(dec, tok, cfg)
	if err != nil {
		return nil, err
	}
	go e.run()
	return e, nil
}

// build makes an engine whose loop does not run yet.
func build(dec model.Decoder, tok tokenizer.Tokenizer, cfg Config) (*Engine, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	blocks := dec.Blocks()
	if blocks < 1 {
		return nil, errors.New("engine: the decoder has no cache blocks")
	}
	window := blocks * model.BlockTokens
	if context := dec.Config().Context; context > 0 {
		window = min(window, context)
	}
	e := &Engine{
		dec:     dec,
		tok:     tok,
		limits:  schedule.Limits{Running: cfg.MaxRunning, StepTokens: cfg.StepTokens, PieceTokens: cfg.PieceTokens},
		queue:   cfg.MaxQueue,
		gap:     cfg.MaxGap,
		noKV:    cfg.NoKVCache,
		lookup:  !cfg.NoLookup && !cfg.NoKVCache,
		reserve: cfg.NoPreemption,
		vocab:   dec.Config().Vocab,
		window:  window,
		ends:    tok.Special().EndOfGeneration,
		wake:    make(chan struct{}, 1),
		done:    make(chan struct{}),
	}
	deep := depthOfDouble(dec.Config())
	e.loop.beside = schedule.NewThrottle(firstPrompt, 1, deep)
	e.loop.alone = schedule.NewThrottle(mostPrompt, leastAlone, deep)
	if best, ok := dec.(model.BestDecoder); ok && best.MaxBest() > 0 {
		e.best = best
	}
	e.loop.fetch = e.fetchRow
	slots := 0
	if mover, ok := dec.(model.Offloader); ok && mover.Slots() > 0 {
		e.mover, slots = mover, mover.Slots()
	}
	e.loop.pool = kvcache.NewPool(blocks, kvcache.Config{NoPrefix: cfg.NoPrefixCache || cfg.NoKVCache, Slots: slots})
	e.stats.BlocksFree = blocks
	return e, nil
}

const (
	// maxStep is how long a step of prompts alone may take, the longest wait of a
	// newcomer or a cancel for its end. It matters where the machine is overloaded or
	// slow for the model.
	maxStep = time.Second
	// leastAlone is how many rows such a step has all the same: with fewer, reading
	// the weights would be most of its work.
	leastAlone = 32
	// firstPrompt is how many rows of prompts the first step beside answers has, and
	// mostPrompt more than any step has.
	firstPrompt, mostPrompt = 4, 1 << 16
	// measureEvery is how often a step beside prompts leaves them out, and leastMixed
	// after how many it may.
	measureEvery, leastMixed = 32, 4
	// intSpeed is about how much faster than attention, in float32, quantised matrices
	// are multiplied.
	intSpeed = 4
)

// depthOfDouble is the depth at which attention costs a row about as much as all
// the matrices: 2 operations a weight against 4·heads·dim a position.
func depthOfDouble(c model.Config) float64 {
	heads := c.Heads * c.HeadDim
	if heads == 0 {
		return 0
	}
	weights := c.Width*(2*heads+2*c.KVHeads*c.HeadDim) + 3*c.Width*c.FeedForward
	return float64(weights) / float64(2*heads) / intSpeed
}

// Window is the most tokens prompt and answer may have together.
func (e *Engine) Window() int { return e.window }

// Submit queues a request. It returns at once: with a stream, or with an error
// that matches ErrInvalid, ErrQueueFull or ErrClosed, or is a *TooLongError. When
// ctx ends the request is cancelled as by Stream.Close.
func (e *Engine) Submit(ctx context.Context, r Request) (*Stream, error) {
	if err := e.check(&r); err != nil {
		return nil, err
	}
	s, err := e.newSequence(&r)
	if err != nil {
		return nil, err
	}
	if err := e.enqueue(ctx, s); err != nil {
		return nil, err
	}
	select {
	case e.wake <- struct{}{}:
	default:
	}
	return s.feed.Stream(), nil
}

func (e *Engine) enqueue(ctx context.Context, s *sequence) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.phase != open {
		return ErrClosed
	}
	if e.full(s.tenant) {
		e.stats.Refused++
		return &QueueFullError{Waiting: len(e.waiting), Limit: e.queue, Wait: e.wait()}
	}
	e.waiting = append(e.waiting, s)
	e.stats.Submitted++
	s.feed.Queued(1 + slices.Index(e.order(), len(e.waiting)-1))
	s.feed.Watch(ctx)
	return nil
}

// full reports whether a request of a tenant is to be refused. A tenant with nothing
// in the queue finds a place beyond its end, as many again as it has, so that one
// that fills the queue shuts nobody else out. The caller holds the lock.
func (e *Engine) full(tenant string) bool {
	taken, places := len(e.waiting)+e.stats.Running, e.queue+e.limits.Running
	waits := func(s *sequence) bool { return s.tenant == tenant }
	return taken >= places && (slices.ContainsFunc(e.waiting, waits) || len(e.waiting) >= 2*e.queue)
}

// leave takes a request that its reader closed out of the queue at once, in the
// middle of a step too. One that runs is left to the loop.
func (e *Engine) leave(s *sequence) {
	e.mu.Lock()
	defer e.mu.Unlock()
	at := slices.Index(e.waiting, s)
	if at < 0 {
		return
	}
	e.waiting = slices.Delete(e.waiting, at, at+1)
	e.stats.Cancelled++
	if s.started > 0 {
		e.account(s)
	}
	s.feed.Finish("", s.outcome(ReasonCancelled))
	e.tellPlaces(e.order())
}

// Close lets running answers finish until ctx ends, then cancels them. Those
// that wait fail with ErrClosed at once. It returns ctx's error when answers
// were cut short, and that of closing the decoder.
func (e *Engine) Close(ctx context.Context) error {
	e.advancePhase(draining)
	select {
	case <-e.done:
		return e.closed
	case <-ctx.Done():
	}
	e.advancePhase(stopping)
	<-e.done
	return errors.Join(context.Cause(ctx), e.closed)
}

func (e *Engine) advancePhase(to phase) {
	e.mu.Lock()
	e.phase = max(e.phase, to)
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
}
