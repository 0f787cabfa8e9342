package answer

import (
	"context"
	"time"

	"ragd/prompt"
	"ragd/telemetry"
)

// Generator runs a prompt. It is the engine, or a remote server.
type Generator interface {
	// Model describes what answers.
	Model() ModelInfo
	// Generate runs the request and calls emit, from the calling goroutine, for
	// everything that happens before the end. When ctx ends it returns what was
	// generated so far with ctx's error.
	Generate(ctx context.Context, req Generation, emit func(Event)) (Generated, error)
	// Pace is how fast it is now.
	Pace() Pace
	// CheckFormat returns an *Error when an answer of the form, which is not text,
	// cannot be had.
	CheckFormat(f ResponseFormat) error
}

// ModelInfo is what the road needs to know of the answer model.
type ModelInfo struct {
	Name   string
	Window int // tokens of prompt and answer together
	// Small models state what a paragraph says so unreliably that the
	// paragraph's own sentences go first.
	Small bool
	// Languages are ISO 639-1 codes the model was made for; empty means any.
	Languages []string
	// Server is where the model runs; the zero value is this process.
	Server telemetry.Server
}

// Speaks reports whether the model was made for a language.
func (m ModelInfo) Speaks(lang string) bool {
	for _, l := range m.Languages {
		if l == lang {
			return true
		}
	}
	return len(m.Languages) == 0
}

// Generation is one run of the model.
type Generation struct {
	Tokens []int32
	// Messages are what Tokens were rendered from, for servers that render themselves.
	Messages  []prompt.Message
	MaxTokens int
	Sampling  SamplingParams
	Stop      []string
	// Format is the form of the answer; nil for text.
	Format *ResponseFormat
	// Confidence asks for Generated.MeanLogProb.
	Confidence bool
	// FirstTokenBy is when the first token was asked for; zero when at no time.
	FirstTokenBy time.Time
}

// SamplingParams are the resolved numbers of a request.
type SamplingParams struct {
	Temperature, TopP, MinP, RepetitionPenalty float64
	TopK                                       int
	Seed                                       uint64
}

// Event is something that happened while generating: a place in the queue, or
// text. A text of no bytes is not sent.
type Event struct {
	Queued   bool
	Position int
	Text     string
}

// Generated is a finished or interrupted generation.
type Generated struct {
	FinishReason string // stop, length, stop_string, cancelled
	OutputTokens int
	CachedTokens int
	// InputTokens is the count of a server that renders the prompt itself; 0 where the
	// tokens given are what was read.
	InputTokens int
	// MeanLogProb is the mean log probability of the chosen tokens, if it was
	// asked for.
	MeanLogProb float64
	Times       telemetry.EngineTimes
	Machine     Machine
}

// Machine is a request's share of the engine's time: of a step that runs tokens of
// several requests each has a part. Zero where it is not known.
type Machine struct{ Prefill, Decode time.Duration }

func (m *Machine) add(o Machine) {
	m.Prefill += o.Prefill
	m.Decode += o.Decode
}

// Pace is how fast the engine is at the moment.
type Pace struct {
	// Prefill is prompt tokens a second, 0 while nothing was measured.
	Prefill float64
	// Wait is the predicted time until a new request starts.
	Wait time.Duration
}

// Forecaster is a Generator that knows how it shares its time, and what it has of a
// prompt already. Of any other, Pace serves.
type Forecaster interface {
	// FirstToken is how long a prompt submitted now, with a time for its first token or
	// the zero time, takes to it, when its first warm tokens are in the cache; 0 while
	// nothing was measured.
	FirstToken(prompt, warm int, by time.Time) time.Duration
	// Warm is how many of the first tokens are in the cache, for the tenant of ctx.
	Warm(ctx context.Context, tokens []int32) int
}

// predict is how long it takes until a prompt of n tokens is read.
func (p Pace) predict(n int) time.Duration {
	if p.Prefill == 0 {
		return 0
	}
	return p.Wait + time.Duration(float64(n)/p.Prefill*float64(time.Second))
}
