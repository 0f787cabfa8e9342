package main

import (
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"ragd/ingest"
	"ragd/internal/answer"
	"ragd/internal/app"
)

func newReembed(o *options) *cobra.Command {
	var collections []string
	cmd := &cobra.Command{
		Use: "reembed", Short: "Embed collections anew with the configured embedding model",
		Long: "Embed the chunks and sentences of collections with the embedding model of the settings, beside the vectors they have, and " +
			"switch each collection in one transaction when it is complete. Until then its old model answers. Run it again after an " +
			"interruption and it goes on from there. A server that runs meanwhile is not disturbed; start it again with the new model afterwards.",
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			for _, c := range collections {
				if err := answer.ValidateCollection(c); err != nil {
					return &usageError{err}
				}
			}
			return o.reembed(cmd, collections)
		},
	}
	f := cmd.Flags()
	f.StringSliceVarP(&collections, "collection", "c", nil, "collections to embed anew (default all)")
	f.BoolVar(&o.json, "json", false, "print the reports as JSON")
	return cmd
}

func (o *options) reembed(cmd *cobra.Command, collections []string) error {
	cfg, err := o.besideServer()
	if err != nil {
		return err
	}
	opts := o.appOptions(cmd, cfg)
	opts.DocumentsOnly = true
	a, err := app.Open(cmd.Context(), cfg, opts)
	if err != nil {
		return err
	}
	show := newLine(cmd.ErrOrStderr())
	reports, err := a.Reembed(cmd.Context(), collections, func(p ingest.RevisionProgress) { show.draw(revisionLine(p)) })
	show.done("")
	err = errors.Join(err, a.Close())
	if o.json {
		err = errors.Join(printJSON(cmd.OutOrStdout(), reports), err)
	} else {
		printRevisions(cmd.OutOrStdout(), reports)
	}
	if err != nil {
		return err
	}
	for _, r := range reports {
		if !r.Switched {
			return errPartly
		}
	}
	return nil
}

func printRevisions(w io.Writer, list []ingest.RevisionReport) {
	if len(list) == 0 {
		fmt.Fprintln(w, "no collections")
	}
	for _, r := range list {
		for _, f := range r.Failed {
			fmt.Fprintf(w, "%-8s %s: %s\n", f.Status, f.Path, f.Reason)
		}
		switch {
		case !r.Switched:
			fmt.Fprintf(w, "%s: %d of %d chunks embedded; %s goes on answering\n", r.Collection, r.Chunks, r.Total, r.From)
		case r.Chunks == 0 && r.From == r.To:
			fmt.Fprintf(w, "%s: is embedded by %s already\n", r.Collection, r.To)
		default:
			fmt.Fprintf(w, "%s: %s answers now; %d chunks, %d tokens in %s (%.0f tokens/s)\n", r.Collection, r.To, r.Chunks, r.Tokens,
				r.Elapsed.Round(time.Millisecond), float64(r.Tokens)/max(r.Elapsed.Seconds(), 1e-9))
		}
		if r.Long > 0 {
			fmt.Fprintf(w, "note     %s: %d chunks are longer than the model takes and have the mean of their parts' vectors; ingest cuts them anew\n", r.Collection, r.Long)
		}
	}
}

// revisionLine is the progress of a collection: chunks, tokens a second and the
// time left.
func revisionLine(p ingest.RevisionProgress) string {
	rate := 0.0
	if s := p.Elapsed.Seconds(); s > 0 {
		rate = float64(p.Tokens) / s
	}
	return fmt.Sprintf("%s %s %d/%d chunks, %.0f tokens/s, %s left", p.Collection, bar(p.Done, p.Of), p.Done, p.Of, rate, p.Left())
}
