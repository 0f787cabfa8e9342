package telemetry

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"ragd/telemetry/cost"
)

// TestCostIsTheSameEverywhere: span, log row, page and counter have what the request
// is recorded with, and a counter of small amounts does not drift.
func TestCostIsTheSameEverywhere(t *testing.T) {
	r := newRig(t, false)
	const requests = 1000
	c := &cost.Cost{Currency: "USD", Input: 100_000_001, CachedInput: 3, Output: 200_000_007, Total: 300_000_011}
	for range requests {
		ctx, req := r.Begin(t.Context(), "POST /ask", time.Now())
		req.End(ctx, req.Timings(time.Now()), Summary{Outcome: Answered, Cost: c})
	}
	wantLines(t, samples(t, r.Telemetry), `ragd_cost_total{currency="USD",part="input"} 100.000001`, `ragd_cost_total{currency="USD",part="cached_input"} 3e-06`, `ragd_cost_total{currency="USD",part="output"} 200.000007`)
	row, _, _ := strings.Cut(r.log.String(), "\n")
	var logged struct{ Cost cost.Cost }
	if err := json.Unmarshal([]byte(row), &logged); err != nil || logged.Cost != *c {
		t.Errorf("%s: %v", row, err)
	}
	if got := r.Recent(0, 1)[0].Cost; got == nil || *got != *c {
		t.Errorf("the page has %+v", got)
	}
	attrs := map[string]string{}
	for _, a := range r.spans.GetSpans()[0].Attributes {
		attrs[string(a.Key)] = a.Value.String()
	}
	for key, want := range map[string]string{"ragd.cost.input": "0.100000001", "ragd.cost.cached_input": "3e-09", "ragd.cost.output": "0.200000007", "ragd.cost.total": "0.300000011", "ragd.cost.currency": "USD"} {
		if attrs[key] != want {
			t.Errorf("%s is %q, want %s", key, attrs[key], want)
		}
	}
}

// TestWithoutPricesThereIsNoCost, not even one of 0.
func TestWithoutPricesThereIsNoCost(t *testing.T) {
	r := newRig(t, false)
	ctx, req := r.Begin(t.Context(), "POST /ask", time.Now())
	req.End(ctx, req.Timings(time.Now()), Summary{Outcome: Answered})
	if strings.Contains(samples(t, r.Telemetry)+r.log.String(), "cost") {
		t.Error("something has a cost")
	}
}

// TestOffRecordsNothing, yet measures: the body needs its times.
func TestOffRecordsNothing(t *testing.T) {
	log := &strings.Builder{}
	tel, err := New(t.Context(), Config{Off: true}, slog.New(slog.NewJSONHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	oneQuestion(tel)
	ctx, req := tel.Begin(t.Context(), "POST /ask", time.Now())
	_, end := req.Begin(ctx, StageRerank, "")
	end(nil)
	if timings := req.Timings(time.Now()); timings.Stage(StageRerank) <= 0 {
		t.Errorf("nothing was measured: %+v", timings.Rows())
	}
	req.End(ctx, req.Timings(time.Now()), Summary{})
	if log.Len() > 0 || len(tel.Recent(0, 10)) > 0 || strings.Contains(samples(t, tel), "ragd_") || tel.Active() != 0 {
		t.Errorf("recorded: %s%s", log, samples(t, tel))
	}
	if err := tel.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
