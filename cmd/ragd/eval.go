package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/knadh/koanf/providers/structs"
	"github.com/spf13/cobra"

	"ragd/ingest/chunk"
	"ragd/internal/answer"
	"ragd/internal/app"
	"ragd/internal/config"
	"ragd/internal/eval"
)

type evalFlags struct {
	sel       eval.Selection
	half      string
	lang      string
	pipelines []string
	cut       int
	strangers string
	grow      []int
	answers   int
	mode      string
	chunks    []string
	budgets   []int
	counted   string
	noText    bool
	out       string
	compare   bool
}

func newEval(o *options) *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use: "eval SET_DIR | --compare BEFORE.json AFTER.json", Short: "Measure retrieval and answers on a judged set",
		Long: "Ingest the documents of a judged set into a collection of its own, ask its questions through each pipeline and " +
			"print nDCG@10, MRR@10, recall and the milliseconds of each stage. It reads BEIR folders (corpus.jsonl, queries, qrels), " +
			"SQuAD files, Cranfield, TREC text, pairs of *_kor.json and *_eng.json, MTRAG's reference tasks, RGB's facts and the " +
			"Chroma chunking evaluation. A corpus is ingested once. Every run leaves a file with its settings and the score of each question.",
		Args: args(cobra.RangeArgs(1, 2)),
		RunE: func(cmd *cobra.Command, a []string) error {
			if err := f.check(len(a)); err != nil {
				return &usageError{err}
			}
			if f.compare {
				return o.compareRuns(cmd, a[0], a[1])
			}
			return o.eval(cmd, a[0], f)
		},
	}
	fl := cmd.Flags()
	fl.StringSliceVar(&f.pipelines, "pipelines", eval.Pipelines, "which to run: these and late (late interaction, for which the states of all tokens are stored)")
	fl.IntVar(&f.sel.Documents, "limit", 0, "keep this many documents: relevant ones first, of long ones the shortest (0 for all)")
	fl.IntVar(&f.sel.Every, "every", 1, "ask every n-th question")
	fl.StringVar(&f.half, "half", "all", "ask the even or the odd half, or all (tune on even, report odd)")
	fl.StringVar(&f.lang, "languages", "", "languages of questions and documents in a parallel set, such as ko-en")
	fl.IntVar(&f.cut, "passage-tokens", 512, "cut passages here for the embedding model")
	fl.StringVar(&f.strangers, "strangers", "", "a set whose questions these documents do not answer: weigh the bounds on evidence, or, with --answers, ask them too")
	fl.IntSliceVar(&f.grow, "grow", nil, "instead of measuring quality, grow the documents to these numbers of chunks and time the searches")
	fl.BoolVar(&f.noText, "no-text-search", false, "with --grow, leave out the comparison with PostgreSQL's ts_rank_cd")
	fl.IntVar(&f.answers, "answers", 0, "instead of searching alone, answer this many questions with the answer model")
	fl.StringVar(&f.mode, "answer-mode", answer.ModeAuto, "how: auto, generate or extract")
	fl.StringSliceVar(&f.chunks, "chunks", nil, "measure how much of the answers a budget holds when long documents are cut into chunks of these tokens, such as 256/64 with an overlap: Chroma's set, the articles of SQuAD files, or a folder of documents, which are asked for by their headings")
	fl.IntSliceVar(&f.budgets, "budgets", []int{512, 1024}, "with --chunks, show this many tokens")
	fl.StringVar(&f.counted, "budget-model", "answer", "with --chunks, whose tokens the budget counts: those of the answer or of the embedding model")
	fl.StringVar(&f.out, "out", "", "file for the report (default a new one in the data folder's eval)")
	fl.BoolVar(&f.compare, "compare", false, "say what changed from one report to another")
	fl.BoolVar(&o.json, "json", false, "print JSON")
	return cmd
}

func (f evalFlags) check(files int) error {
	for _, p := range f.pipelines {
		if !slices.Contains(eval.AllPipelines, p) {
			return fmt.Errorf("--pipelines: %q is not one of %v", p, eval.AllPipelines)
		}
	}
	switch {
	case f.compare && files != 2:
		return errors.New("--compare takes two reports, the one before and the one after")
	case !f.compare && files != 1:
		return errors.New("one folder of a judged set is measured at a time; two reports take --compare")
	case f.half != "all" && f.half != "even" && f.half != "odd":
		return fmt.Errorf("--half: %q is not all, even or odd", f.half)
	case f.cut < 32:
		return fmt.Errorf("--passage-tokens: %d is less than 32", f.cut)
	case f.sel.Documents < 0 || f.sel.Every < 1:
		return errors.New("--limit must not be negative, --every at least 1")
	case len(f.grow) > 0 && slices.Min(f.grow) < 1:
		return errors.New("--grow: a corpus has at least 1 chunk")
	case f.answers < 0:
		return errors.New("--answers must not be negative")
	case !slices.Contains([]string{answer.ModeAuto, answer.ModeGenerate, answer.ModeExtract}, f.mode):
		return fmt.Errorf("--answer-mode: %q is not auto, generate or extract", f.mode)
	case f.counted != "answer" && f.counted != "embedding":
		return fmt.Errorf("--budget-model: %q is not answer or embedding", f.counted)
	case len(f.budgets) == 0 || slices.Min(f.budgets) < 1:
		return errors.New("--budgets: at least 1 token is shown")
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
	measured, err := f.plan(cmd.Context(), dir, cfg)
	if err != nil {
		return err
	}
	opts := o.appOptions(cmd, cfg)
	opts.DocumentsOnly = f.answers == 0
	a, err := app.Open(cmd.Context(), cfg, opts)
	if err != nil {
		return err
	}
	show := newLine(cmd.ErrOrStderr())
	parts, err := a.EvalParts(cmd.Context())
	var res *eval.Result
	if err == nil {
		res, err = measured(cmd.Context(), parts, func(what string, done, of int) {
			show.draw(fmt.Sprintf("%s: %s %d of %d", filepath.Base(dir), what, done, of))
		})
	}
	show.done("")
	if err = errors.Join(err, a.Close()); err != nil {
		return err
	}
	report := eval.Report{Result: res, Commit: version}
	if report.Config, err = f.settings(cfg); err != nil {
		return err
	}
	path, err := f.keep(a.Home(), report)
	if err != nil {
		return err
	}
	fmt.Fprintln(cmd.ErrOrStderr(), "report:", path)
	if o.json {
		return printJSON(cmd.OutOrStdout(), report)
	}
	printEval(cmd.OutOrStdout(), res)
	return nil
}

// measurement is what a command line asks to be measured.
type measurement func(ctx context.Context, p eval.Parts, progress func(string, int, int)) (*eval.Result, error)

// plan reads the set and chooses what is measured.
func (f evalFlags) plan(ctx context.Context, dir string, cfg config.Config) (measurement, error) {
	if len(f.chunks) > 0 || eval.HoldsSpans(dir) {
		set, err := eval.LongDocuments(ctx, dir)
		if err != nil {
			return nil, err
		}
		set = set.Shortest(f.sel.Documents).Half(eval.Half(f.half))
		chunks, err := f.cuts(cfg)
		if err != nil {
			return nil, &usageError{err}
		}
		return func(ctx context.Context, p eval.Parts, progress func(string, int, int)) (*eval.Result, error) {
			rows, err := eval.Spans(ctx, set, p, eval.SpanConfig{
				Pipelines: f.pipelines, Chunks: chunks, Budgets: f.budgets, EmbedderTokens: f.counted == "embedding", Every: f.sel.Every, Progress: progress,
			})
			return &eval.Result{Set: set.Name, Documents: len(set.Documents), Rows: []eval.Row{}, Spans: rows}, err
		}, nil
	}
	set, err := f.open(dir)
	if err != nil {
		return nil, err
	}
	var foreign *eval.Set
	if f.strangers != "" {
		all := f
		all.half = "all"
		if foreign, err = all.open(f.strangers); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context, p eval.Parts, progress func(string, int, int)) (*eval.Result, error) {
		return f.measure(ctx, set, foreign, p, eval.Config{Pipelines: f.pipelines, PassageTokens: f.cut, NoTextSearch: f.noText, AnswerMode: f.mode, Progress: progress})
	}, nil
}

// measure runs what was asked for on a set of passages; foreign may be nil.
func (f evalFlags) measure(ctx context.Context, set, foreign *eval.Set, p eval.Parts, cfg eval.Config) (res *eval.Result, err error) {
	switch {
	case len(f.grow) > 0:
		return f.runGrowth(ctx, set, p, cfg)
	case f.answers > 0:
		res = &eval.Result{Set: set.Name, Documents: len(set.Documents), Rows: []eval.Row{}}
		res.Answers, err = eval.Answer(ctx, set.With(foreign), p, cfg, f.answers)
		return res, err
	}
	res, err = eval.Run(ctx, set, p, cfg)
	if err == nil && foreign != nil {
		res.Evidence, err = eval.Calibrate(ctx, set, foreign, p, cfg)
	}
	return res, err
}

// cuts are the ways of cutting that --chunks names.
func (f evalFlags) cuts(cfg config.Config) ([]chunk.Config, error) {
	list := f.chunks
	if len(list) == 0 {
		list = []string{fmt.Sprintf("%d/%d", cfg.Ingest.ChunkTokens, cfg.Ingest.OverlapTokens)}
	}
	var out []chunk.Config
	for _, text := range list {
		size, overlap, both := strings.Cut(text, "/")
		c := chunk.Config{Max: maxChunkTokens}
		var err error
		if c.Target, err = strconv.Atoi(size); err == nil && both {
			c.Overlap, err = strconv.Atoi(overlap)
		}
		if err != nil {
			return nil, fmt.Errorf("--chunks: %q is not a number of tokens, or two with a slash", text)
		}
		if err := c.Validate(); err != nil {
			return nil, fmt.Errorf("--chunks: %q: %w", text, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// maxChunkTokens is what the starter embedding model takes.
const maxChunkTokens = 512

// settings are all settings but the secret ones, and this command's flags.
func (f evalFlags) settings(cfg config.Config) (map[string]any, error) {
	cfg.Database.URL, cfg.Server.Keys = "", nil
	all, err := structs.Provider(cfg, "koanf").Read()
	return map[string]any{
		"settings": all,
		"eval": map[string]any{
			"pipelines": f.pipelines, "limit": f.sel.Documents, "every": f.sel.Every, "half": f.half, "languages": f.lang,
			"passage_tokens": f.cut, "strangers": filepath.Base(f.strangers), "answers": f.answers, "answer_mode": f.mode, "chunks": f.chunks, "budgets": f.budgets, "budget_model": f.counted,
		},
	}, err
}

// keep writes the report into a file of its own.
func (f evalFlags) keep(home string, r eval.Report) (string, error) {
	path := f.out
	if path == "" {
		path = filepath.Join(home, "eval", strings.ReplaceAll(r.Set, " ", "-")+time.Now().UTC().Format("-20060102-150405.json"))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			return "", err
		}
	}
	text, err := json.MarshalIndent(r, "", " ")
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(path, append(text, '\n'), 0o644)
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
