package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/knadh/koanf/providers/structs"
	"github.com/spf13/cobra"

	"ragd/internal/app"
	"ragd/internal/eval"
)

// evalReport is what `ragd eval --json` prints (DESIGN §9).
type evalReport struct {
	*eval.Result
	Commit string         `json:"commit"`
	Config map[string]any `json:"config"`
}

type evalFlags struct {
	sel       eval.Selection
	half      string
	lang      string
	pipelines []string
	cut       int
	strangers string
	grow      []int
}

func newEval(o *options) *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use: "eval SET_DIR", Short: "Measure retrieval on a judged set",
		Long: "Ingest the documents of a judged set into a collection of its own, ask its questions through each pipeline and " +
			"print nDCG@10, MRR@10, recall and the milliseconds of each stage. It reads BEIR folders (corpus.jsonl, queries, qrels), " +
			"SQuAD files, Cranfield, TREC text and pairs of *_kor.json and *_eng.json.",
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, a []string) error {
			if err := f.check(); err != nil {
				return &usageError{err}
			}
			return o.eval(cmd, a[0], f)
		},
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.pipelines, "pipelines", eval.Pipelines, "which to run")
	fl.IntVar(&f.sel.Documents, "limit", 0, "keep this many documents, relevant ones first (0 for all)")
	fl.IntVar(&f.sel.Every, "every", 1, "ask every n-th question")
	fl.StringVar(&f.half, "half", "all", "ask the even or the odd half, or all (tune on even, report odd)")
	fl.StringVar(&f.lang, "languages", "", "languages of questions and documents in a parallel set, such as ko-en")
	fl.IntVar(&f.cut, "passage-tokens", 512, "cut passages here for the embedding model")
	fl.StringVar(&f.strangers, "strangers", "", "a set whose questions these documents do not answer: weigh the bounds on evidence")
	fl.IntSliceVar(&f.grow, "grow", nil, "instead of measuring quality, grow the documents to these numbers of chunks and time the searches")
	fl.BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

func (f evalFlags) check() error {
	for _, p := range f.pipelines {
		if !slices.Contains(eval.Pipelines, p) {
			return fmt.Errorf("--pipelines: %q is not one of %v", p, eval.Pipelines)
		}
	}
	switch {
	case f.half != "all" && f.half != "even" && f.half != "odd":
		return fmt.Errorf("--half: %q is not all, even or odd", f.half)
	case f.cut < 32:
		return fmt.Errorf("--passage-tokens: %d is less than 32", f.cut)
	case f.sel.Documents < 0 || f.sel.Every < 1:
		return errors.New("--limit must not be negative, --every at least 1")
	case len(f.grow) > 0 && slices.Min(f.grow) < 1:
		return errors.New("--grow: a corpus has at least 1 chunk")
	}
	return nil
}

func (f evalFlags) open(dir string) (*eval.Set, error) {
	set, err := eval.Open(dir, eval.Languages(f.lang))
	if err != nil {
		return nil, err
	}
	f.sel.Half = eval.Half(f.half)
	return set.Select(f.sel)
}

func (o *options) eval(cmd *cobra.Command, dir string, f evalFlags) error {
	cfg, err := o.config()
	if err != nil {
		return err
	}
	set, err := f.open(dir)
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
	res, err := f.run(cmd.Context(), a, set, func(what string, done, of int) {
		show.draw(fmt.Sprintf("%s: %s %d of %d", set.Name, what, done, of))
	})
	show.done("")
	if err = errors.Join(err, a.Close()); err != nil {
		return err
	}
	if o.json {
		settings, err := structs.Provider(cfg.Retrieve, "koanf").Read()
		if err != nil {
			return err
		}
		settings["passage_tokens"], settings["every"], settings["half"], settings["limit"] = f.cut, f.sel.Every, f.half, f.sel.Documents
		return printJSON(cmd.OutOrStdout(), evalReport{res, version, settings})
	}
	printEval(cmd.OutOrStdout(), res)
	return nil
}

func (f evalFlags) run(ctx context.Context, a *app.App, set *eval.Set, progress func(string, int, int)) (*eval.Result, error) {
	parts, err := a.EvalParts(ctx)
	if err != nil {
		return nil, err
	}
	cfg := eval.Config{Pipelines: f.pipelines, PassageTokens: f.cut, Progress: progress}
	if len(f.grow) > 0 {
		return f.runGrowth(ctx, set, parts, cfg)
	}
	res, err := eval.Run(ctx, set, parts, cfg)
	if err != nil || f.strangers == "" {
		return res, err
	}
	f.half = "all"
	foreign, err := f.open(f.strangers)
	if err != nil {
		return nil, err
	}
	res.Evidence, err = eval.Calibrate(ctx, set, foreign, parts, cfg)
	return res, err
}

// runGrowth times the searches at each size.
func (f evalFlags) runGrowth(ctx context.Context, set *eval.Set, p eval.Parts, cfg eval.Config) (*eval.Result, error) {
	res := &eval.Result{Set: set.Name, Documents: len(set.Documents), Rows: []eval.Row{}}
	for _, n := range f.grow {
		g, err := eval.Grow(ctx, set, p, cfg, n)
		if err != nil {
			return nil, err
		}
		res.Growth = append(res.Growth, *g)
	}
	return res, nil
}

func printGrowth(w io.Writer, list []eval.Growth) {
	t := newTable(w, 0, 2, 3, 4, 5, 6)
	t.row("chunks", "pipeline", "p50 ms", "p95 ms", "put ms", "segments", "lists MB")
	for _, g := range list {
		for _, r := range g.Rows {
			t.row(fmt.Sprint(g.Chunks), r.Pipeline, tenths(r.P50), tenths(r.P95), fmt.Sprintf("%.2f", g.PutMS),
				fmt.Sprint(g.Index.Segments), tenths(float64(g.Index.Bytes)/1e6))
		}
	}
	t.print()
}

func printEval(w io.Writer, r *eval.Result) {
	fmt.Fprintf(w, "%s: %d documents\n", r.Set, r.Documents)
	if r.Growth != nil {
		printGrowth(w, r.Growth)
		return
	}
	t := newTable(w, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	t.row("pipeline", "questions", "nDCG@10", "±", "MRR@10", "R@5", "R@20", "R@100", "dense ms", "lexical ms", "fuse ms", "rerank ms")
	for _, row := range r.Rows {
		t.row(row.Pipeline, fmt.Sprint(row.Queries), points(row.NDCG10), points((row.NDCG10Interval[1]-row.NDCG10Interval[0])/2),
			points(row.MRR10), points(row.Recall5), points(row.Recall20), points(row.Recall100),
			tenths(row.MS.Dense), tenths(row.MS.Lexical), tenths(row.MS.Fuse), tenths(row.MS.Rerank))
	}
	t.print()
	if r.Evidence != nil {
		printEvidence(w, r.Evidence)
	}
}

func printEvidence(w io.Writer, e *eval.Evidence) {
	fmt.Fprintf(w, "\nevidence against questions of %s\nown      cosine %v\n         words  %v\nforeign  cosine %v\n         words  %v\n",
		e.Strangers, e.Own.Cosine, e.Own.Words, e.Foreign.Cosine, e.Foreign.Words)
	t := newTable(w, 0, 1, 2, 3)
	t.row("min_score", "min_words", "answered", "refused")
	for _, b := range e.Bounds {
		t.row(fmt.Sprintf("%.2f", b.MinScore), fmt.Sprintf("%.2f", b.MinWords), points(b.Answered), points(b.Refused))
	}
	t.print()
}

func points(v float64) string { return fmt.Sprintf("%.3f", v) }
func tenths(v float64) string { return fmt.Sprintf("%.1f", v) }
