package bench

import (
	"context"
	"errors"
)

// SweepReport is the same load at rising rates.
type SweepReport struct {
	Commit string      `json:"commit"`
	Runs   []AskReport `json:"runs"`
	// Saturated is the first rate that was not answered as fast as it was sent; 0 when
	// all were.
	Saturated float64 `json:"saturated,omitempty"`
}

const (
	// maxDoublings bounds a sweep that looks for saturation itself.
	maxDoublings = 12
	// followed is the share of the rate sent that must be answered in the time of
	// sending; failed is the share that may fail.
	followed, failed = 0.85, 0.05
)

// RunSweep runs the load at each of the rates, or, when there are none, at cfg.Rate
// and ever doubled until it saturates.
func RunSweep(ctx context.Context, cfg AskConfig, rates []float64) (SweepReport, error) {
	var r SweepReport
	rate := cfg.Rate
	for i := 0; ; i++ {
		switch {
		case i < len(rates):
			rate = rates[i]
		case len(rates) > 0 || r.Saturated > 0 || i == maxDoublings:
			return r, nil
		}
		cfg.Rate = rate
		run, err := RunAsk(ctx, cfg)
		if errors.Is(err, ErrNothingAnswered) && i > 0 {
			r.saturate(rate)
			return r, nil
		}
		if err != nil {
			return r, err
		}
		r.Runs = append(r.Runs, run)
		if run.saturated() {
			r.saturate(rate)
		}
		rate *= 2
	}
}

func (r *SweepReport) saturate(rate float64) {
	if r.Saturated == 0 {
		r.Saturated = rate
	}
}

// saturated says whether answers came slower than questions. The time that the last
// answer takes without waiting is not counted: it follows the last question even on
// an idle server.
func (r *AskReport) saturated() bool {
	answered := float64(r.Requests - r.Failed)
	total, _ := r.Stage("total")
	queue, _ := r.Stage("queue")
	seconds := answered/r.Throughput - max(0, total.P50-queue.P50)/1000
	return answered < followed*r.Rate*seconds || float64(r.Failed) > failed*float64(r.Requests)
}

// Curve are the points of answers a second over questions a second.
func (r *SweepReport) Curve(of func(AskReport) float64) []Point {
	out := make([]Point, len(r.Runs))
	for i, run := range r.Runs {
		out[i] = Point{X: run.Rate, Y: of(run)}
	}
	return out
}

// all gathers the points of every run.
func (r *SweepReport) all(of func(AskReport) []Point) []Point {
	var out []Point
	for _, run := range r.Runs {
		out = append(out, of(run)...)
	}
	return out
}
