package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"ragd/internal/answer"
	"ragd/internal/bench"
	"ragd/prompt/budget"
	"ragd/telemetry"
)

// askBench are the flags of bench ask.
type askBench struct {
	run              bench.AskConfig
	file, collection string
	mode             string
	rates            []float64
	saturate         bool
	ttftBudget       int
	maxChunks        int
	detail           string
	svg, html        string
	peer             peerFlags
}

func newBenchAsk(o *options) *cobra.Command {
	var b askBench
	cmd := &cobra.Command{
		Use: "ask", Short: "Measure the question road under load, or in turn with llama.cpp's server and PostgreSQL", Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := b.check(cmd); err != nil {
				return &usageError{err}
			}
			backend, closeBackend, err := o.openAsker(cmd)
			if err != nil {
				return err
			}
			defer func() { err = cmp.Or(err, closeBackend()) }()
			if b.peer.server != "" {
				return b.against(cmd, o, backend)
			}
			return b.load(cmd, o, backend)
		},
	}
	f := cmd.Flags()
	f.StringVar(&b.file, "questions", "", "file of questions, one a line (required)")
	f.StringVarP(&b.collection, "collection", "c", "default", "collection to ask")
	f.StringVar(&b.mode, "mode", answer.ModeAuto, "auto, generate or extract")
	f.IntVar(&b.run.Requests, "requests", 50, "how many questions to send")
	f.Float64Var(&b.run.Rate, "rate", 1, "questions a second, on average")
	f.Float64SliceVar(&b.rates, "rates", nil, "several rates, one after another, instead of --rate")
	f.BoolVar(&b.saturate, "saturate", false, "double --rate until answers come slower than questions")
	f.Float64Var(&b.run.Within, "within", 0, "milliseconds in which the first token of a good answer comes (default any)")
	f.IntVar(&b.ttftBudget, "ttft-budget", 0, "ask for a first token within so many milliseconds and report how it was kept; implies --mode generate")
	f.IntVar(&b.maxChunks, "max-chunks", 0, "chunks to present at the most (default from the settings)")
	f.StringVar(&b.detail, "detail", "", "with --ttft-budget: auto, chunks or sentences")
	f.Uint64Var(&b.run.Seed, "seed", 1, "seed of the order and the moments")
	f.StringVar(&b.svg, "svg", "", "write a picture of input tokens against time to first token to a file")
	f.StringVar(&b.html, "html", "", "write a report with tables and pictures to a file")
	f.BoolVar(&o.json, "json", false, "print JSON")
	b.peer.add(f)
	return cmd
}

func (b *askBench) check(cmd *cobra.Command) (err error) {
	if b.run.Requests < 1 || !(b.run.Rate > 0) || b.ttftBudget < 0 || !(b.run.Within >= 0) { // NaN is neither
		return fmt.Errorf("bench ask: --requests must be at least 1, --rate above 0, --ttft-budget and --within not below 0")
	}
	for _, r := range b.rates {
		if !(r > 0) {
			return fmt.Errorf("bench ask: --rates: %g is not above 0", r)
		}
	}
	if b.saturate && len(b.rates) > 0 {
		return fmt.Errorf("bench ask: --saturate finds the rates itself: leave --rates out")
	}
	if err := b.peer.check(); err != nil {
		return err
	}
	// Quotes that go out before the model has read anything would hide its first token.
	if (b.ttftBudget > 0 || b.peer.server != "") && !cmd.Flags().Changed("mode") {
		b.mode = answer.ModeGenerate
	}
	if b.run.Questions, err = readLines(b.file); err != nil {
		return fmt.Errorf("bench ask: --questions: %w", err)
	}
	return nil
}

// load makes the load and prints what came of it.
func (b *askBench) load(cmd *cobra.Command, o *options, backend asker) error {
	b.run.Progress = progressTo(cmd.ErrOrStderr())
	b.run.Ask = func(ctx context.Context, question string) (bench.Asked, error) { return b.once(ctx, backend, question) }
	sweep := bench.SweepReport{}
	var err error
	if b.saturate || len(b.rates) > 0 {
		sweep, err = bench.RunSweep(cmd.Context(), b.run, b.rates)
	} else {
		var one bench.AskReport
		one, err = bench.RunAsk(cmd.Context(), b.run)
		sweep.Runs = []bench.AskReport{one}
	}
	if err != nil {
		return err
	}
	sweep.Commit = version
	for i := range sweep.Runs {
		sweep.Runs[i].Commit = version
	}
	last := sweep.Runs[len(sweep.Runs)-1]
	switch {
	case o.json && len(sweep.Runs) == 1:
		err = printJSON(cmd.OutOrStdout(), last)
	case o.json:
		err = printJSON(cmd.OutOrStdout(), sweep)
	default:
		printSweep(cmd.OutOrStdout(), sweep)
	}
	return cmp.Or(err,
		writePicture(b.svg, func(w io.Writer) error {
			return bench.WriteScatter(w, last.Points, "input tokens", "time to first token, ms")
		}),
		writePicture(b.html, func(w io.Writer) error { return bench.WriteHTML(w, sweep) }))
}

// once asks and takes the ledger.
func (b *askBench) once(ctx context.Context, backend asker, question string) (bench.Asked, error) {
	req := answer.Request{Question: question, Collection: b.collection, AnswerMode: b.mode}
	if b.ttftBudget > 0 {
		req.Budget = &answer.Budget{TTFTMS: &b.ttftBudget, Detail: answer.Detail(b.detail)}
	}
	if b.maxChunks > 0 {
		req.MaxChunks = &b.maxChunks
	}
	res, err := backend.Ask(ctx, req, silent{})
	if err != nil {
		return bench.Asked{}, err
	}
	t := res.Timings
	a := bench.Asked{InputTokens: res.Usage.InputTokens, OutputTokens: res.Usage.OutputTokens, TTFT: msOf(t.TTFT), Total: msOf(t.Total)}
	for _, row := range t.Rows() {
		a.Stages = append(a.Stages, bench.Stage{Name: row.Name, MS: msOf(row.Duration)})
	}
	a.Stages = append(a.Stages, bench.Stage{Name: "total", MS: msOf(t.Total)})
	if t.TTFT > 0 {
		a.Stages = append(a.Stages, bench.Stage{Name: "ttft", MS: msOf(t.TTFT)})
	}
	if b.ttftBudget > 0 {
		a.Promise = promise(res)
	}
	return a, nil
}

// promise is how the time to first token that was asked for came out; nil when no
// model ran.
func promise(res *answer.Result) *bench.Promise {
	f := res.FirstToken
	if f == nil {
		return nil
	}
	p := &bench.Promise{
		Asked: f.AskedMS, Predicted: f.PredictedMS, Observed: f.ObservedMS,
		Fresh: res.Usage.InputTokens - res.Usage.CachedTokens, Prefill: msOf(res.Timings.Stage(telemetry.StagePrefill)),
	}
	for _, d := range res.Usage.Ledger.Dropped {
		if d.Reason == budget.OverTTFT {
			p.Dropped = append(p.Dropped, d.Tokens)
		}
	}
	// With one chunk left of several it may have been more than the time allows.
	p.Fixed = len(res.Usage.Ledger.Evidence) == 1 && len(p.Dropped) > 0 && f.PredictedMS > f.AskedMS
	return p
}

func msOf(d time.Duration) float64 { return float64(d) / 1e6 }

func printSweep(w io.Writer, r bench.SweepReport) {
	for _, run := range r.Runs {
		printLoad(w, run)
	}
	if len(r.Runs) == 1 {
		return
	}
	t := newTable(w, 0, 1, 2, 3, 4, 5)
	t.row("sent a second", "answered", "good", "failed", "queue p95, ms", "ttft p95, ms")
	t.rule()
	for _, run := range r.Runs {
		queue, _ := run.Stage("queue")
		ttft, _ := run.Stage("ttft")
		t.row(rate(run.Rate), rate(run.Throughput), rate(run.Goodput), fmt.Sprint(run.Failed), number(queue.P95), number(ttft.P95))
	}
	t.print()
	if r.Saturated > 0 {
		fmt.Fprintf(w, "saturated at %g a second\n", r.Saturated)
	}
}

func printLoad(w io.Writer, r bench.AskReport) {
	fmt.Fprintf(w, "%d requests, %.2f a second sent, %.2f answered, %.2f good, %d failed\n", r.Requests, r.Rate, r.Throughput, r.Goodput, r.Failed)
	for text, n := range r.Errors {
		fmt.Fprintf(w, "  %d × %s\n", n, text)
	}
	if p := r.Promises; p != nil {
		fmt.Fprintf(w, "first token within %.0f ms: kept in %.1f %% of %d that could (%d could not); prediction off by %.0f %% (median), %.0f %% (p95), bias %+.0f %%; %d cut evidence, %d of them more than a chunk too much\n",
			p.Asked, 100*p.Within, p.Count-p.Impossible, p.Impossible, 100*p.ErrorP50, 100*p.ErrorP95, 100*p.Bias, p.Cut, p.Meagre)
	}
	fmt.Fprintln(w)
	t := newTable(w, 1, 2, 3, 4)
	t.row("milliseconds", "p50", "p95", "p99", "max")
	t.rule()
	for _, s := range r.Stages {
		t.row(s.Name, number(s.P50), number(s.P95), number(s.P99), number(s.Max))
	}
	t.print()
	fmt.Fprintln(w)
}

func number(v float64) string { return fmt.Sprintf("%.1f", v) }

func rate(v float64) string { return fmt.Sprintf("%.2f", v) }
