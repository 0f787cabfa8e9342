package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// AskConfig says what load to make.
type AskConfig struct {
	Questions []string
	// Requests is how many are sent, Rate how many a second on average. They are sent
	// at random moments (Poisson arrivals) whether earlier ones are answered or not,
	// as independent users do.
	Requests int
	Rate     float64
	Seed     uint64
	// Ask answers one question.
	Ask      func(ctx context.Context, question string) (Asked, error)
	Progress func(string)
	// Within is the time to first token that counts as good, in milliseconds; 0 for
	// any.
	Within float64
}

// Asked is one answered request: how long each stage took, in milliseconds, by the
// names of the ledger, and what it was given.
type Asked struct {
	Stages       []Stage
	InputTokens  int
	OutputTokens int
	TTFT, Total  float64
	// Promise is set when a time to first token was asked for.
	Promise *Promise
}

// Stage is one line of the latency ledger.
type Stage struct {
	Name string
	MS   float64
}

// AskReport is what came of it.
type AskReport struct {
	Commit   string  `json:"commit"`
	Requests int     `json:"requests"`
	Failed   int     `json:"failed"`
	Rate     float64 `json:"rate"` // sent a second, as it came out
	// Throughput is answers a second until the last of them, and Goodput those of
	// them whose first token came within Within milliseconds (0: any).
	Throughput float64        `json:"throughput"`
	Goodput    float64        `json:"goodput"`
	Within     float64        `json:"within_ms,omitempty"`
	Stages     []StageSpread  `json:"stages"`
	Errors     map[string]int `json:"errors,omitempty"`
	Promises   *Promises      `json:"promises,omitempty"`
	Points     []Point        `json:"-"` // input tokens, time to first token in ms
	Outputs    []Point        `json:"-"` // output tokens, total in ms
}

// Stage is the spread of one stage; false when none was measured.
func (r *AskReport) Stage(name string) (StageSpread, bool) {
	for _, s := range r.Stages {
		if s.Name == name {
			return s, true
		}
	}
	return StageSpread{}, false
}

// StageSpread is the distribution of one stage in milliseconds.
type StageSpread struct {
	Name string  `json:"name"`
	P50  float64 `json:"p50"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// ErrNothingAnswered is the result of a run in which every request failed.
var ErrNothingAnswered = errors.New("no request was answered")

// RunAsk sends the load and waits for the last answer. When ctx ends, what was not
// sent is left out. It fails with ErrNothingAnswered, and the report says why.
func RunAsk(ctx context.Context, cfg AskConfig) (AskReport, error) {
	from := rand.New(rand.NewPCG(cfg.Seed, 2))
	var mu sync.Mutex
	var answered []Asked
	failures := make(map[string]int)
	var wg sync.WaitGroup
	began := time.Now()
	due, sent := began, 0
	for ; sent < cfg.Requests && wait(ctx, due); sent++ {
		question := cfg.Questions[from.IntN(len(cfg.Questions))]
		cfg.Progress(fmt.Sprintf("%d of %d sent", sent+1, cfg.Requests))
		wg.Go(func() {
			a, err := cfg.Ask(ctx, question)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failures[err.Error()]++
				return
			}
			answered = append(answered, a)
		})
		due = due.Add(time.Duration(from.ExpFloat64() / cfg.Rate * float64(time.Second)))
	}
	took := time.Since(began)
	wg.Wait()
	r := AskReport{Requests: sent, Failed: sent - len(answered), Rate: float64(sent) / took.Seconds(), Within: cfg.Within, Errors: failures}
	if len(answered) == 0 {
		return r, fmt.Errorf("%w: %v", ErrNothingAnswered, failures)
	}
	r.summarise(answered, time.Since(began))
	return r, context.Cause(ctx)
}

// wait sleeps until a moment and reports whether ctx is still alive.
func wait(ctx context.Context, until time.Time) bool {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func (r *AskReport) summarise(answered []Asked, took time.Duration) {
	r.Throughput = float64(len(answered)) / took.Seconds()
	r.Promises = kept(answered)
	byName := make(map[string][]float64)
	var names []string
	for _, a := range answered {
		for _, s := range a.Stages {
			if byName[s.Name] == nil {
				names = append(names, s.Name)
			}
			byName[s.Name] = append(byName[s.Name], s.MS)
		}
		if a.TTFT > 0 {
			r.Points = append(r.Points, Point{X: float64(a.InputTokens), Y: a.TTFT})
		}
		if a.OutputTokens > 0 {
			r.Outputs = append(r.Outputs, Point{X: float64(a.OutputTokens), Y: a.Total})
		}
		if a.TTFT > 0 && (r.Within == 0 || a.TTFT <= r.Within) {
			r.Goodput += 1 / took.Seconds()
		}
	}
	for _, name := range names {
		v := byName[name]
		slices.Sort(v)
		r.Stages = append(r.Stages, StageSpread{
			Name: name, P50: Percentile(v, 0.50), P95: Percentile(v, 0.95), P99: Percentile(v, 0.99), Max: v[len(v)-1],
		})
	}
}
