package engine

import "time"

// Event is one of Queued, Scheduled, Delta, Done, Failed.
type Event interface{ event() }

// Queued says where in the queue the request stands, from 1. It comes first,
// and again as the request moves up.
type Queued struct{ Position int }

// Scheduled says that the request has started.
type Scheduled struct {
	At time.Time
	// CachedTokens is how many prompt tokens were found in the prefix cache.
	CachedTokens int
}

// Delta is new text. It is whole UTF-8 characters and never part of a stop text.
type Delta struct {
	Text string
	// Tokens are the ids drawn since the last Delta. Text may lag behind them
	// while a character or a possible stop text is unfinished; the last Delta
	// may have tokens only.
	Tokens []int32
}

// Done is the last event of an answer that ended well or was cancelled.
type Done struct {
	Reason     Reason
	Usage      Usage
	Times      Times
	Confidence Confidence
}

// Failed is the last event of an answer that ended in an error.
type Failed struct {
	Err   error
	Usage Usage
	Times Times
}

func (Queued) event()    {}
func (Scheduled) event() {}
func (Delta) event()     {}
func (Done) event()      {}
func (Failed) event()    {}

// Reason says why an answer ended.
type Reason string

// The reasons.
const (
	ReasonStop       Reason = "stop"        // the model ended it
	ReasonLength     Reason = "length"      // MaxTokens was reached
	ReasonStopString Reason = "stop_string" // a stop text appeared
	ReasonCancelled  Reason = "cancelled"   // the caller is gone
)

// Usage counts tokens as the decoder saw them.
type Usage struct {
	InputTokens  int // the prompt
	OutputTokens int // drawn, with the one that ended the answer
	CachedTokens int // of the prompt, taken from the prefix cache
	// DraftedTokens were guessed by prompt lookup, AcceptedTokens of them were
	// right and are part of OutputTokens.
	DraftedTokens, AcceptedTokens int
	// Preemptions is how often the answer had to give its cache blocks back and wait,
	// RecomputedTokens how many rows were run a second time for that. They are neither
	// input nor output.
	Preemptions, RecomputedTokens int
	// PrefillTime and DecodeTime are the request's share of the decoder's time: each
	// step is divided by the tokens that it ran, before and after the first token of
	// the answer. Over all requests they add up to the time that the decoder worked.
	PrefillTime, DecodeTime time.Duration
}

// Times are stamped by the engine on the monotonic clock. One that was not
// reached is zero.
type Times struct {
	Submitted  time.Time
	Scheduled  time.Time
	FirstToken time.Time // the first token was drawn
	Last       time.Time // the last token was drawn
	// Preempted is how long the request waited after it had started, since its cache
	// blocks were needed elsewhere. It is part of Prefill or Decode.
	Preempted time.Duration
}

// Queue is the time from submitted to scheduled.
func (t Times) Queue() time.Duration { return between(t.Submitted, t.Scheduled) }

// Prefill is the time from scheduled to the first token.
func (t Times) Prefill() time.Duration { return between(t.Scheduled, t.FirstToken) }

// Decode is the time from the first token to the last.
func (t Times) Decode() time.Duration { return between(t.FirstToken, t.Last) }

func between(from, to time.Time) time.Duration {
	if from.IsZero() || to.IsZero() {
		return 0
	}
	return to.Sub(from)
}

// Confidence is the natural logarithm of the probability the model gave to the
// tokens that were drawn, before temperature and cut-offs. It is taken only when
// the request asked for it.
type Confidence struct {
	Mean, Min float64
	// Tokens is how many they were taken over; with 0 nothing is known.
	Tokens int
}

// Add takes the log probability of another token into account.
func (c *Confidence) Add(logProb float64) {
	c.Tokens++
	c.Mean += (logProb - c.Mean) / float64(c.Tokens)
	c.Min = min(c.Min, logProb)
}
