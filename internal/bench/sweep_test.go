package bench

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// oneAtATime answers in 100 ms, one question after another.
func oneAtATime() func(context.Context, string) (Asked, error) {
	place := make(chan struct{}, 1)
	return func(context.Context, string) (Asked, error) {
		began := time.Now()
		place <- struct{}{}
		time.Sleep(100 * time.Millisecond)
		<-place
		took := inMS(time.Since(began))
		return Asked{
			Stages: []Stage{{"queue", took - 100}, {"total", took}}, InputTokens: 300, OutputTokens: 20, TTFT: took - 50, Total: took,
		}, nil
	}
}

// A server that answers ten a second saturates above that.
func TestSweepFindsSaturation(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := AskConfig{Questions: []string{"q"}, Requests: 200, Rate: 2, Seed: 1, Within: 200, Progress: func(string) {}, Ask: oneAtATime()}
		r, err := RunSweep(t.Context(), cfg, nil)
		if err != nil {
			t.Fatal(err)
		}
		if r.Saturated != 16 || len(r.Runs) != 4 {
			t.Fatalf("saturated at %v after %d runs, want at 16 after 4", r.Saturated, len(r.Runs))
		}
		first, last := r.Runs[0], r.Runs[3]
		if last.Throughput < 9 || last.Throughput > 10.1 || last.Goodput > 5 || first.Goodput < 0.9*first.Throughput {
			t.Errorf("at %v a second: %v answered, %v good; at %v: %v and %v", first.Rate, first.Throughput, first.Goodput, last.Rate, last.Throughput, last.Goodput)
		}
		if q, ok := last.Stage("queue"); !ok || q.P50 < 1000 {
			t.Errorf("queue at the last rate: %+v", q)
		}
	})
}

func TestSweepTakesTheRatesGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cfg := AskConfig{Questions: []string{"q"}, Requests: 50, Rate: 9, Progress: func(string) {}, Ask: oneAtATime()}
		r, err := RunSweep(t.Context(), cfg, []float64{50, 1})
		if err != nil || len(r.Runs) != 2 || r.Saturated != 50 {
			t.Errorf("%d runs, saturated at %v, %v", len(r.Runs), r.Saturated, err)
		}
		cfg.Ask = func(context.Context, string) (Asked, error) { return Asked{}, errors.New("gone") }
		if _, err := RunSweep(t.Context(), cfg, nil); !errors.Is(err, ErrNothingAnswered) {
			t.Errorf("%v, want ErrNothingAnswered", err)
		}
	})
}

// The page is whole: it parses, loads nothing from elsewhere, and shows every rate.
func TestHTMLReport(t *testing.T) {
	run := AskReport{
		Requests: 10, Rate: 2, Throughput: 1.9, Goodput: 1.5, Within: 500,
		Stages: []StageSpread{{"prefill", 1, 2, 3, 4}, {"ttft", 5, 6, 7, 8}, {"total", 9, 10, 11, 12}},
		Points: []Point{{100, 50}, {200, 90}}, Outputs: []Point{{10, 500}, {20, 900}},
		Promises: &Promises{Asked: 500, Count: 10, Within: 0.9}, Errors: map[string]int{"<script>alert(1)</script>": 1},
	}
	var page bytes.Buffer
	if err := WriteHTML(&page, SweepReport{Commit: "abc", Runs: []AskReport{run, run}, Saturated: 2}); err != nil {
		t.Fatal(err)
	}
	text := page.String()
	for _, want := range []string{"prefill", "0.40 ms a token", "saturated", "abc", "90 %"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if n := strings.Count(text, "<svg"); n != 3 {
		t.Errorf("%d pictures, want 3", n)
	}
	for _, bad := range []string{"<script", "src=", "href=", "url("} {
		if strings.Contains(text, bad) {
			t.Errorf("the page has %q", bad)
		}
	}
	d := xml.NewDecoder(strings.NewReader(text))
	d.Strict = false
	d.AutoClose, d.Entity = xml.HTMLAutoClose, xml.HTMLEntity
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
}
