package engine

import (
	"errors"
	"fmt"
	"math"
	"time"

	"ragd/inference/sample"
)

// Request is one answer to be generated.
type Request struct {
	// Tokens is the whole prompt, at least one id.
	Tokens []int32
	// MaxTokens is the longest answer in tokens, at least 1.
	MaxTokens int
	// Sampling says how tokens are drawn; the seed belongs to the request. The
	// repetition penalty counts the answer only: an answer from given evidence
	// has to repeat it.
	Sampling sample.Params
	// Stop are texts that end the answer and are not part of it.
	Stop []string
	// Tenant separates the prefix cache and is what fairness goes by.
	Tenant string
	// FirstTokenBy is when the first token was promised, or zero. To keep that, steps
	// take more of this prompt than the gaps of running answers would allow, as far as
	// needed and unless Config.MaxGap is set.
	FirstTokenBy time.Time
	// Confidence asks for Done.Confidence, which costs a pass over the vocabulary
	// for every token.
	Confidence bool
	// IgnoreEOS goes on past the model's own end of answer, for measuring.
	IgnoreEOS bool
	// NoLookup drafts nothing for this answer, for measuring.
	NoLookup bool
}

var (
	// ErrInvalid is a request that can never be served; the text says why.
	ErrInvalid = errors.New("invalid request")
	// ErrQueueFull is matched by every *QueueFullError.
	ErrQueueFull = errors.New("queue is full")
	// ErrClosed is returned by Submit, and by streams that still waited, once
	// Close was called.
	ErrClosed = errors.New("engine is closed")
)

// QueueFullError is a refusal because too many wait.
type QueueFullError struct {
	Waiting int // requests that wait
	Limit   int // how many may
	// Wait is Stats.Wait at that moment, 0 while no step was measured.
	Wait time.Duration
}

func (e *QueueFullError) Error() string {
	return fmt.Sprintf("queue is full: %d requests wait, the limit is %d", e.Waiting, e.Limit)
}

// Is reports ErrQueueFull.
func (e *QueueFullError) Is(target error) bool { return target == ErrQueueFull }

// TooLongError is a request whose prompt and longest answer do not fit.
type TooLongError struct {
	Tokens int // prompt and MaxTokens together
	Window int // the model's context or the whole cache, whichever is smaller
}

func (e *TooLongError) Error() string {
	return fmt.Sprintf("prompt and answer take %d tokens, the window holds %d", e.Tokens, e.Window)
}

// PanicError is a panic inside a step. The value and the stack are for the log.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("internal error in a step: %v", e.Value) }

// check refuses what can never run, whatever else is going on.
func (e *Engine) check(r *Request) error {
	if len(r.Tokens) == 0 {
		return fmt.Errorf("%w: the prompt has no tokens", ErrInvalid)
	}
	if r.MaxTokens < 1 {
		return fmt.Errorf("%w: max tokens is %d, at least 1 is needed", ErrInvalid, r.MaxTokens)
	}
	for i, id := range r.Tokens {
		if id < 0 || int(id) >= e.vocab {
			return fmt.Errorf("%w: token %d is %d, the vocabulary has %d", ErrInvalid, i, id, e.vocab)
		}
	}
	return r.CheckWindow(e.window)
}

// CheckWindow fails with a *TooLongError when prompt and longest answer take more
// tokens than a window holds.
func (r *Request) CheckWindow(window int) error {
	// Not their sum, which could overflow.
	if room := window - len(r.Tokens); room >= 0 && r.MaxTokens <= room {
		return nil
	}
	return &TooLongError{Tokens: len(r.Tokens) + min(r.MaxTokens, math.MaxInt-len(r.Tokens)), Window: window}
}
