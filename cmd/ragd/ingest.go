package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"ragd/ingest"
	"ragd/internal/answer"
	"ragd/internal/app"
	"ragd/internal/client"
	"ragd/internal/config"
	"ragd/internal/httpapi"
	"ragd/internal/watch"
)

func newIngest(o *options) *cobra.Command {
	var req httpapi.IngestRequest
	var follow bool
	cmd := &cobra.Command{
		Use: "ingest PATH...", Short: "Read files and folders into a collection",
		Long: "Read files and folders into a collection. Files that did not change since the last run are left alone, " +
			"changed ones replaced. With --prune, documents below the given paths whose files are gone are removed.",
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, paths []string) (err error) {
			cfg, err := o.config()
			if err != nil {
				return err
			}
			if err := answer.ValidateCollection(req.Collection); err != nil {
				return &usageError{err}
			}
			if req.Paths, err = absolute(paths); err != nil {
				return err
			}
			run, closeRun, err := o.ingester(cmd, cfg, req)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, closeRun()) }()
			once := func(ctx context.Context) error {
				show := newLine(cmd.ErrOrStderr())
				report, err := run(ctx, func(p ingest.Progress) { show.draw(ingestLine(p)) })
				show.done("")
				return ingestDone(cmd, report, err, o.json)
			}
			if !follow {
				return once(cmd.Context())
			}
			return follows(cmd, req.Paths, once)
		},
	}
	f := cmd.Flags()
	f.StringVarP(&req.Collection, "collection", "c", "default", "collection to fill")
	f.BoolVar(&req.Prune, "prune", false, "remove documents whose files are gone")
	f.BoolVar(&follow, "watch", false, "go on, and ingest again whenever a file changes, until interrupted")
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	return cmd
}

func absolute(paths []string) ([]string, error) {
	out := make([]string, len(paths))
	for i, p := range paths {
		abs, err := filepath.Abs(p)
		if err != nil {
			return nil, err
		}
		out[i] = abs
	}
	return out, nil
}

// ingestRun reads the files once.
type ingestRun func(ctx context.Context, progress func(ingest.Progress)) (ingest.Report, error)

// ingester hands the work to a running server, or opens what does it here.
func (o *options) ingester(cmd *cobra.Command, cfg config.Config, req httpapi.IngestRequest) (ingestRun, func() error, error) {
	if c := o.server(cmd, cfg); c != nil {
		return func(ctx context.Context, progress func(ingest.Progress)) (ingest.Report, error) {
			return remoteIngest(ctx, c, req, progress)
		}, func() error { return nil }, nil
	}
	opts := o.appOptions(cmd, cfg)
	opts.DocumentsOnly = true
	a, err := app.Open(cmd.Context(), cfg, opts)
	if err != nil {
		return nil, nil, err
	}
	return func(ctx context.Context, progress func(ingest.Progress)) (ingest.Report, error) {
		return a.Ingest(ctx, req, progress)
	}, a.Close, nil
}

// follows ingests at once and after every change. A file that fails, or a moment without a
// database, does not end it.
func follows(cmd *cobra.Command, paths []string, once func(context.Context) error) error {
	again := func(ctx context.Context) error {
		err := once(ctx)
		switch {
		case ctx.Err() != nil, errors.Is(err, errInterrupted):
			return errInterrupted
		case err != nil && !errors.Is(err, errPartly):
			fmt.Fprintln(cmd.ErrOrStderr(), "ragd:", err)
		}
		return nil
	}
	err := watch.Run(cmd.Context(), paths, watch.Config{}, again)
	if cmd.Context().Err() != nil {
		return errInterrupted
	}
	return err
}

func remoteIngest(ctx context.Context, c *client.Client, req httpapi.IngestRequest, progress func(ingest.Progress)) (ingest.Report, error) {
	return c.Ingest(ctx, req.Paths, req.Collection, req.Prune, progress)
}

// ingestDone prints the report and chooses the exit code: what was stored is
// told even when the run ended early.
func ingestDone(cmd *cobra.Command, r ingest.Report, err error, asJSON bool) error {
	began := r.Found > 0 || err == nil
	switch {
	case began && asJSON:
		if err := printJSON(cmd.OutOrStdout(), r); err != nil {
			return err
		}
	case began:
		printReport(cmd.OutOrStdout(), r)
	}
	switch {
	case r.Interrupted:
		return errInterrupted
	case err != nil:
		return err
	case !r.Complete():
		return errPartly
	}
	return nil
}

func printReport(w io.Writer, r ingest.Report) {
	for _, f := range r.Files {
		if f.Status == ingest.Failed || f.Status == ingest.Skipped {
			fmt.Fprintf(w, "%-8s %s: %s\n", f.Status, shownLine(f.Path), shown(f.Reason))
		}
		for _, warning := range f.Warnings {
			fmt.Fprintf(w, "note     %s: %s\n", shownLine(f.Path), shown(warning))
		}
	}
	fmt.Fprintf(w, "%d found: %d indexed, %d unchanged, %d skipped, %d failed", r.Found, r.Indexed, r.Unchanged, r.Skipped, r.Failed)
	if r.Remaining > 0 {
		fmt.Fprintf(w, ", %d not reached", r.Remaining)
	}
	if r.Pruned > 0 {
		fmt.Fprintf(w, "; %d removed", r.Pruned)
	}
	rate := 0.0
	if s := r.Elapsed.Seconds(); s > 0 {
		rate = float64(r.Tokens) / s
	}
	fmt.Fprintf(w, "\n%d chunks, %d tokens in %s (%.0f tokens/s)", r.Chunks, r.Tokens, r.Elapsed.Round(time.Millisecond), rate)
	if r.Repeats > 0 {
		fmt.Fprintf(w, "; %d texts came again and were not embedded again", r.Repeats)
	}
	fmt.Fprintln(w)
	if r.Indexed > 0 {
		printTimes(w, r)
	}
}

// printTimes says where the time went: what embedding leaves of a run is what a
// faster embedding model cannot win.
func printTimes(w io.Writer, r ingest.Report) {
	share := func(d time.Duration) string {
		return fmt.Sprintf("%.0f %%", 100*d.Seconds()/max(r.Elapsed.Seconds(), 1e-9))
	}
	fmt.Fprintf(w, "of the time: reading %s, cutting %s, embedding %s, storing %s (side by side)\n",
		share(r.Times.Read), share(r.Times.Chunk), share(r.Times.Embed), share(r.Times.Store))
}
