package answer

import (
	"context"
	"slices"
	"sync"
	"time"

	"ragd/prompt/budget"
	"ragd/telemetry"
)

// firstToken predicts how long a prompt submitted now, whose first token is to be there
// by a time, takes to it; 0 while nothing was measured.
func (a *asking) firstToken(prompt, warm int, by time.Time) time.Duration {
	if f, ok := a.Generator.(Forecaster); ok {
		return f.FirstToken(prompt, warm, by)
	}
	return a.Generator.Pace().predict(prompt - warm)
}

func (s *Service) warm(ctx context.Context, tokens []int32) int {
	if f, ok := s.Generator.(Forecaster); ok {
		return f.Warm(ctx, tokens)
	}
	return 0
}

// within is how many prompt tokens can be read in d, in a hurry if need be, with a margin
// for what cannot be foreseen; 0, no limit, while nothing is known.
func (a *asking) within(ctx context.Context, d time.Duration) int {
	window := a.Generator.Model().Window
	warm := a.warm(ctx, a.skeleton)
	if a.firstToken(window, warm, a.received) == 0 {
		return 0
	}
	factor := a.margin.factor()
	fits, not := 1, window+1
	for not-fits > 1 {
		n := (fits + not) / 2
		if time.Duration(factor*float64(a.firstToken(n, warm, a.received))) <= d {
			fits = n
		} else {
			not = n
		}
	}
	return fits
}

// predict notes when the first token is to come, and holds the engine to it where a
// time was asked for. The prompt is rendered by now, so its length and what of it is
// warm are exact.
func (a *asking) predict(ctx context.Context) {
	a.res.FirstToken = &FirstToken{}
	if asked := a.req.budget().TTFTMS; asked != nil {
		a.res.FirstToken.AskedMS = float64(*asked)
		a.due = a.received.Add(time.Duration(*asked) * time.Millisecond)
	}
	a.promised = a.firstToken(len(a.tokens), a.warm(ctx, a.tokens), a.due)
	if a.promised == 0 {
		return
	}
	at := time.Now().Add(a.promised)
	a.res.FirstToken.PredictedMS = inMS(at.Sub(a.received))
	if at.Before(a.due) {
		a.due = at
	}
}

// judge notes when it came, and lets the margin learn from answers that it cut: a short
// prompt that comes 10 ms late is half its time late and says nothing about those that
// the margin is for.
func (a *asking) judge(t telemetry.EngineTimes) {
	if t.FirstToken.IsZero() {
		return
	}
	a.res.FirstToken.ObservedMS = inMS(t.FirstToken.Sub(a.received))
	if a.promised > 0 && a.cut() {
		a.margin.learn(t.FirstToken.Sub(t.Submitted).Seconds() / a.promised.Seconds())
	}
}

func inMS(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

// late says whether evidence that fits the window was left out whole for the time.
func (a *asking) late() bool {
	return len(a.plan.Kept) == 0 && a.cut()
}

// cut says whether evidence was left out for the time.
func (a *asking) cut() bool {
	return slices.ContainsFunc(a.plan.Dropped, func(d budget.Dropped) bool { return d.Reason == budget.OverTTFT })
}

// hurry packs for a time in which no evidence can be read. An answer that may be
// extracted is: quoting takes no model. Any other reads the best evidence alone, in
// its shortest form, and is late, which the prediction tells. It is no refusal: the
// documents do have evidence.
func (a *asking) hurry(in budget.Input) (*budget.Plan, error) {
	a.hurried = true
	in.Limits.TTFTTokens = 0
	if a.mode() != KindExtracted {
		in.Limits.MaxChunks, in.Detail = 1, budget.Sentences
	}
	plan, err := budget.Pack(in)
	if err != nil {
		return nil, err
	}
	for i, d := range plan.Dropped {
		if d.Reason == budget.MaxChunks {
			plan.Dropped[i].Reason = budget.OverTTFT
		}
	}
	return plan, nil
}

// margin is the factor by which predictions are stretched, so that all but few first
// tokens come within them. It follows the quantile of observed ÷ predicted by small
// steps: up when one came later, down when it did not, in the ratio that keeps the
// share of late ones.
type margin struct {
	mu sync.Mutex
	at float64
}

const (
	// inTime is the share of first tokens that are to come in time. It is above what
	// is asked of a budget, since the margin follows with delay.
	inTime = 0.97
	// stride is how far the margin moves for a late one.
	stride                               = 0.08
	firstMargin, leastMargin, mostMargin = 1.15, 1, 3
)

func newMargin() *margin { return &margin{at: firstMargin} }

func (m *margin) factor() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.at
}

// learn takes one observed ÷ predicted into account.
func (m *margin) learn(ratio float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if ratio > m.at {
		m.at *= 1 + stride*inTime
	} else {
		m.at *= 1 - stride*(1-inTime)
	}
	m.at = min(max(m.at, leastMargin), mostMargin)
}
