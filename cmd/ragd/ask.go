package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"ragd/internal/answer"
	"ragd/internal/app"
)

// asker answers questions: a running server, or the stages in this process.
type asker interface {
	Ask(ctx context.Context, req answer.Request, sink answer.Sink) (*answer.Result, error)
	Search(ctx context.Context, req answer.SearchRequest) (*answer.SearchResult, error)
}

// openAsker returns a running server's client, or starts what is needed.
func (o *options) openAsker(cmd *cobra.Command) (asker, func() error, error) {
	cfg, err := o.config()
	if err != nil {
		return nil, nil, err
	}
	if c := o.server(cmd, cfg); c != nil {
		return c, func() error { return nil }, nil
	}
	a, err := app.Open(cmd.Context(), cfg, o.appOptions(cmd, cfg))
	if err != nil {
		return nil, nil, err
	}
	return a, a.Close, nil
}

func newAsk(o *options) *cobra.Command {
	var req answer.Request
	var collections []string
	cmd := &cobra.Command{
		Use: "ask QUESTION", Short: "Ask one question", Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) (err error) {
			req.Question = a[0]
			req.Collection, req.Collections = oneOrSeveral(collections)
			if err := req.Validate(); err != nil {
				return &usageError{err}
			}
			backend, closeBackend, err := o.openAsker(cmd)
			if err != nil {
				return err
			}
			defer func() { err = cmp.Or(err, closeBackend()) }()
			return ask(cmd, backend, req, o.json)
		},
	}
	f := cmd.Flags()
	f.StringSliceVarP(&collections, "collection", "c", nil, "collections to ask, as if they were one (default \"default\")")
	f.StringVar(&req.AnswerMode, "mode", answer.ModeAuto, "auto, generate or extract")
	f.BoolVar(&req.Explain, "explain", false, "show the prompt by component and every candidate (with --json)")
	f.BoolVar(&o.json, "json", false, "print the answer body")
	return cmd
}

func ask(cmd *cobra.Command, backend asker, req answer.Request, asJSON bool) error {
	w := cmd.OutOrStdout()
	if asJSON {
		res, err := backend.Ask(cmd.Context(), req, silent{})
		if err != nil {
			return err
		}
		return printJSON(w, res)
	}
	stream := &terminalSink{w: w}
	res, err := backend.Ask(cmd.Context(), req, stream)
	stream.end()
	if err != nil {
		return err
	}
	printSources(w, res)
	fmt.Fprintln(w)
	printTokens(w, res.Usage)
	fmt.Fprintln(w)
	printTimings(w, res)
	return nil
}

// terminalSink shows an answer as it comes.
type terminalSink struct {
	w       io.Writer
	newline bool
}

func (s *terminalSink) Begun(string) {}

func (s *terminalSink) Queued(position int) {
	if position > 1 {
		fmt.Fprintf(s.w, "(place %d in the queue)\n", position)
	}
}

func (s *terminalSink) Sources(answer.Sources) {}

func (s *terminalSink) Delta(text string) {
	fmt.Fprint(s.w, shown(text))
	s.newline = strings.HasSuffix(text, "\n")
}

func (s *terminalSink) Citation(answer.Citation) {}

func (s *terminalSink) end() {
	if !s.newline {
		fmt.Fprintln(s.w)
	}
	fmt.Fprintln(s.w)
}

// silent takes an answer without showing it.
type silent struct{}

func (silent) Begun(string)             {}
func (silent) Queued(int)               {}
func (silent) Sources(answer.Sources)   {}
func (silent) Delta(string)             {}
func (silent) Citation(answer.Citation) {}

func newSearch(o *options) *cobra.Command {
	var req answer.SearchRequest
	var topK int
	var collections []string
	cmd := &cobra.Command{
		Use: "search QUERY", Short: "Find chunks without generating", Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) (err error) {
			req.Query = a[0]
			req.Collection, req.Collections = oneOrSeveral(collections)
			if cmd.Flags().Changed("top-k") {
				req.TopK = &topK
			}
			backend, closeBackend, err := o.openAsker(cmd)
			if err != nil {
				return err
			}
			defer func() { err = cmp.Or(err, closeBackend()) }()
			res, err := backend.Search(cmd.Context(), req)
			if err != nil {
				return err
			}
			if o.json {
				return printJSON(cmd.OutOrStdout(), res)
			}
			printSearch(cmd.OutOrStdout(), res)
			return nil
		},
	}
	f := cmd.Flags()
	f.StringSliceVarP(&collections, "collection", "c", nil, "collections to search, as if they were one (default \"default\")")
	f.IntVarP(&topK, "top-k", "k", 0, "how many chunks to find (default from the settings)")
	f.BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

func printSearch(w io.Writer, res *answer.SearchResult) {
	if len(res.Results) == 0 {
		fmt.Fprintln(w, "nothing found")
		return
	}
	t := newTable(w, 0, 1)
	several := slices.ContainsFunc(res.Results, func(c answer.Candidate) bool { return c.Collection != res.Results[0].Collection })
	t.head("score", "cosine", "document", "text")
	for _, r := range res.Results {
		line := strings.Join(strings.Fields(r.Text), " ")
		if runes := []rune(line); len(runes) > 80 {
			line = string(runes[:80]) + "…"
		}
		if r.Dropped != "" {
			line = "(" + r.Dropped + ") " + line
		}
		t.row(fmt.Sprintf("%.3f", r.Scores.Rerank), fmt.Sprintf("%.3f", r.Scores.Dense), place(r.Source, several), line)
	}
	t.print()
}

// place names a document, with its collection where there are several.
func place(s answer.Source, several bool) string {
	if several {
		return s.Collection + ": " + s.Document
	}
	return s.Document
}

// oneOrSeveral is how a request names its collections.
func oneOrSeveral(names []string) (one string, several []string) {
	if len(names) == 1 {
		return names[0], nil
	}
	return "", names
}

func printJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}
