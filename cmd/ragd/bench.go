package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"ragd/inference/engine"
	"ragd/inference/model"
	"ragd/internal/app"
	"ragd/internal/bench"
	"ragd/internal/config"
)

func newBench(o *options) *cobra.Command {
	cmd := &cobra.Command{Use: "bench", Short: "Measure speed: engine, embed, ask", Args: args(cobra.NoArgs)}
	cmd.AddCommand(newBenchEngine(o), newBenchEmbed(o), newBenchAsk(o))
	return cmd
}

// benchFlags are those of every measuring command.
type benchFlags struct {
	model, against, svg string
	threads, pairs      int
}

func (b *benchFlags) add(cmd *cobra.Command, o *options) {
	f := cmd.Flags()
	f.StringVar(&b.model, "model", "", "model name or file (default the configured one)")
	f.IntVar(&b.threads, "threads", 0, "threads that compute (default inference.threads)")
	f.IntVar(&b.pairs, "pairs", 5, "how often each test runs")
	f.BoolVar(&o.json, "json", false, "print JSON")
}

// resolve settles defaults and finds the model.
func (b *benchFlags) resolve(cmd *cobra.Command, cfg config.Config, fallback string) (path string, err error) {
	if b.pairs < 1 || b.pairs > 1000 {
		return "", &usageError{fmt.Errorf("bench: --pairs is %d, it must be between 1 and 1000", b.pairs)}
	}
	if b.threads < 0 || b.threads > 1024 {
		return "", &usageError{fmt.Errorf("bench: --threads is %d, it must be between 1 and 1024, or 0 for inference.threads", b.threads)}
	}
	if b.threads == 0 {
		b.threads = cfg.Inference.Threads
	}
	if b.model == "" {
		b.model = fallback
	}
	show := newDownloads(cmd.ErrOrStderr())
	defer show.end()
	return app.ModelPath(cmd.Context(), cfg, b.model, show.progress)
}

func newBenchEngine(o *options) *cobra.Command {
	var b benchFlags
	var peerModel, tests, device string
	var peerFlags []string
	cmd := &cobra.Command{
		Use: "engine", Short: "Measure prefill, decode, streams and caches, alone or in turn with llama-bench", Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := o.config()
			if err != nil {
				return err
			}
			run := bench.EngineConfig{Commit: version, Pairs: b.pairs, Progress: progressTo(cmd.ErrOrStderr())}
			if tests != "" {
				run.Tests = strings.Split(tests, ",")
			}
			if err := bench.CheckTests(run.Tests); err != nil {
				return &usageError{err}
			}
			if run.Model, err = b.resolve(cmd, cfg, cfg.Models.Answer); err != nil {
				return err
			}
			run.Threads, run.Pairs = b.threads, b.pairs
			i := cfg.Inference
			run.CacheType = app.CacheType(i)
			run.Engine = engine.Config{StepTokens: i.StepTokens, PieceTokens: i.PieceTokens}
			if device != config.DeviceCPU {
				run.Backend = func() (model.Ops, error) { return app.OpenDevice(cfg, device) }
			}
			if b.against != "" {
				run.Peer = &bench.LlamaBench{Path: b.against, Model: peerModel, Threads: b.threads, Flags: peerFlags}
				if peerModel == "" {
					run.Peer.Model = run.Model
				}
			}
			report, err := bench.RunEngine(cmd.Context(), run)
			if err != nil {
				return err
			}
			// What took minutes is printed before a picture can fail.
			return cmp.Or(printBench(cmd.OutOrStdout(), report, o.json),
				writePicture(b.svg, func(w io.Writer) error { return bench.WriteBars(w, report) }))
		},
	}
	b.add(cmd, o)
	f := cmd.Flags()
	f.StringVar(&device, "device", config.DeviceCPU, "what computes: cpu, or cuda:0 for the first GPU")
	f.StringVar(&tests, "tests", "", "tests to run, such as pp512,tg64@d2048,streams8 (default "+strings.Join(bench.EngineTests, ",")+")")
	f.StringVar(&b.against, "against", "", "path of llama-bench, to run in turn with")
	f.StringVar(&peerModel, "peer-model", "", "model file for llama-bench (default the same)")
	f.StringArrayVar(&peerFlags, "peer-flag", nil, "another flag for llama-bench; may be repeated")
	f.StringVar(&b.svg, "svg", "", "write a picture of the speeds to a file")
	return cmd
}

func newBenchEmbed(o *options) *cobra.Command {
	var b benchFlags
	var texts string
	cmd := &cobra.Command{
		Use: "embed", Short: "Measure passages a second and the latency of a query", Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, err := o.config()
			if err != nil {
				return err
			}
			run := bench.EmbedConfig{Commit: version, Peer: strings.Fields(b.against), Progress: progressTo(cmd.ErrOrStderr())}
			if texts != "" {
				if run.Texts, err = readLines(texts); err != nil {
					return err
				}
			}
			if run.Model, err = b.resolve(cmd, cfg, cfg.Models.Embedding); err != nil {
				return err
			}
			run.Threads, run.Pairs = b.threads, b.pairs
			report, err := bench.RunEmbed(cmd.Context(), run)
			if err != nil {
				return err
			}
			return printBench(cmd.OutOrStdout(), report, o.json)
		},
	}
	b.add(cmd, o)
	f := cmd.Flags()
	f.StringVar(&texts, "texts", "", "file of passages, one a line (default built-in ones)")
	f.StringVar(&b.against, "against", "", "command that embeds texts, to run in turn with (docs/PERFORMANCE.md has its protocol)")
	return cmd
}

// maxTextLine bounds a line of a file of texts.
const maxTextLine = 1 << 20

// readLines reads the lines of a file that are not blank.
func readLines(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var lines []string
	s := bufio.NewScanner(f)
	s.Buffer(nil, maxTextLine)
	for s.Scan() {
		if line := strings.TrimSpace(s.Text()); line != "" {
			lines = append(lines, line)
		}
	}
	if s.Err() == nil && len(lines) == 0 {
		return nil, fmt.Errorf("%s has no lines", path)
	}
	return lines, s.Err()
}

// progressTo says what runs on one line of a terminal, and nothing to a pipe.
func progressTo(w io.Writer) func(string) {
	if !isTerminal(w) {
		return func(string) {}
	}
	return func(what string) { fmt.Fprintf(w, "\r\x1b[K%s ", what) }
}

func writePicture(path string, write func(io.Writer) error) error {
	if path == "" {
		return nil
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return cmp.Or(write(f), f.Close())
}

func printBench(w io.Writer, r bench.Report, asJSON bool) error {
	if asJSON {
		return printJSON(w, r)
	}
	if r.Machine.Device != "" {
		fmt.Fprintf(w, "on %s\n", r.Machine.Device)
	}
	if p := r.Machine.Peak; p != nil {
		fmt.Fprintf(w, "at the most %.0f GB/s, %.0f TOP/s of int8, %.0f TFLOP/s of float16: computed from what the driver reports\n", p.GBs, p.Int8/1e3, p.Float16/1e3)
	}
	if r.CacheType != "" {
		fmt.Fprintf(w, "KV cache in %s\n", r.CacheType)
	}
	fmt.Fprintf(w, "%s, %d threads: reads %.1f GB/s, multiplies %.0f GOP/s (int8)\n\n", r.Machine.CPU, r.Machine.Threads, r.Machine.GBs, r.Machine.GOPs)
	t := newTable(w, 1, 3, 5)
	t.row("test", "ragd", "min – max", "peer", "min – max", "ratio", "min – max", "of peak")
	t.rule()
	for _, test := range r.Tests {
		row := append([]string{test.Name}, spread(&test.Ragd, 1)...)
		row[1] += " " + test.Unit
		row = append(append(row, spread(test.Peer, 1)...), spread(test.Ratio, 2)...)
		if test.OfPeak != nil {
			row = append(row, fmt.Sprintf("%.0f %%", 100**test.OfPeak))
		}
		t.row(row...)
	}
	t.print()
	for _, test := range r.Tests {
		if test.Detail != "" {
			fmt.Fprintf(w, "\n%s: %s\n", test.Name, test.Detail)
		}
	}
	return nil
}

// spread is a median and its range in two cells; both are empty for nil.
func spread(s *bench.Spread, digits int) []string {
	if s == nil {
		return []string{"", ""}
	}
	return []string{fmt.Sprintf("%.*f", digits, s.Median), fmt.Sprintf("%.*f – %.*f", digits, s.Min, digits, s.Max)}
}
