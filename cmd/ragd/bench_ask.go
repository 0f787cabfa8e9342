package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"ragd/internal/answer"
	"ragd/internal/bench"
)

func newBenchAsk(o *options) *cobra.Command {
	var run bench.AskConfig
	var file, collection, mode, picture string
	cmd := &cobra.Command{
		Use: "ask", Short: "Measure the question road under load: questions at random moments, percentiles of every stage", Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if run.Requests < 1 || run.Rate <= 0 {
				return &usageError{fmt.Errorf("bench ask: --requests must be at least 1 and --rate above 0")}
			}
			if run.Questions, err = readLines(file); err != nil {
				return &usageError{fmt.Errorf("bench ask: --questions: %w", err)}
			}
			backend, closeBackend, err := o.openAsker(cmd)
			if err != nil {
				return err
			}
			defer func() { err = firstError(err, closeBackend()) }()
			run.Progress = progressTo(cmd.ErrOrStderr())
			run.Ask = func(ctx context.Context, question string) (bench.Asked, error) {
				return askOnce(ctx, backend, answer.Request{Question: question, Collection: collection, AnswerMode: mode})
			}
			report, err := bench.RunAsk(cmd.Context(), run)
			if err != nil {
				return err
			}
			report.Commit = version
			if err := writePicture(picture, func(w io.Writer) error {
				return bench.WriteScatter(w, report.Points, "input tokens", "time to first token, ms")
			}); err != nil {
				return err
			}
			return printAskBench(cmd.OutOrStdout(), report, o.json)
		},
	}
	f := cmd.Flags()
	f.StringVar(&file, "questions", "", "file of questions, one a line (required)")
	f.StringVarP(&collection, "collection", "c", "default", "collection to ask")
	f.StringVar(&mode, "mode", answer.ModeAuto, "auto, generate or extract")
	f.IntVar(&run.Requests, "requests", 50, "how many questions to send")
	f.Float64Var(&run.Rate, "rate", 1, "questions a second, on average")
	f.Uint64Var(&run.Seed, "seed", 1, "seed of the order and the moments")
	f.StringVar(&picture, "svg", "", "write a picture of input tokens against time to first token to a file")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

// askOnce asks and takes the ledger.
func askOnce(ctx context.Context, backend asker, req answer.Request) (bench.Asked, error) {
	res, err := backend.Ask(ctx, req, silent{})
	if err != nil {
		return bench.Asked{}, err
	}
	t := res.Timings
	a := bench.Asked{InputTokens: res.Usage.InputTokens, TTFT: msOf(t.TTFT)}
	for _, row := range t.Rows() {
		a.Stages = append(a.Stages, bench.Stage{Name: row.Name, MS: msOf(row.Duration)})
	}
	a.Stages = append(a.Stages, bench.Stage{Name: "total", MS: msOf(t.Total)})
	if t.TTFT > 0 {
		a.Stages = append(a.Stages, bench.Stage{Name: "ttft", MS: msOf(t.TTFT)})
	}
	return a, nil
}

func msOf(d time.Duration) float64 { return float64(d) / 1e6 }

func printAskBench(w io.Writer, r bench.AskReport, asJSON bool) error {
	if asJSON {
		return printJSON(w, r)
	}
	fmt.Fprintf(w, "%d requests, %.2f a second, %d failed\n", r.Requests, r.Rate, r.Failed)
	for text, n := range r.Errors {
		fmt.Fprintf(w, "  %d × %s\n", n, text)
	}
	fmt.Fprintln(w)
	t := newTable(w, 1, 2, 3, 4)
	t.row("milliseconds", "p50", "p95", "p99", "max")
	t.rule()
	for _, s := range r.Stages {
		t.row(s.Name, number(s.P50), number(s.P95), number(s.P99), number(s.Max))
	}
	t.print()
	return nil
}

func number(v float64) string { return fmt.Sprintf("%.1f", v) }
