package main

import (
	"fmt"
	"io"

	"ragd/internal/eval"
)

func printGrowth(w io.Writer, list []eval.Growth) {
	t := newTable(w, 0, 2, 3, 4, 5)
	t.row("chunks", "pipeline", "questions", "p50 ms", "p95 ms", "ragd's CPU ms")
	for _, g := range list {
		for _, r := range g.Rows {
			t.row(fmt.Sprint(g.Chunks), r.Pipeline, fmt.Sprint(r.Questions), tenths(r.P50), tenths(r.P95), tenths(r.CPU))
		}
		for _, f := range g.Filtered {
			way := "index"
			if f.Exact {
				way = "exact"
			}
			t.row(fmt.Sprint(g.Chunks), fmt.Sprintf("%s, of %s (%d, %s)", f.Pipeline, f.Keeps, f.Matching, way), fmt.Sprint(f.Questions), tenths(f.P50), tenths(f.P95), tenths(f.CPU))
		}
	}
	t.print()
	for _, g := range list {
		if g.Recall != nil {
			fmt.Fprintf(w, "%d chunks: the dense side finds %.3f of the ten nearest; its index has %.1f MB\n", g.Chunks, *g.Recall, float64(g.VectorIndex)/1e6)
		}
	}
	fmt.Fprintln(w)
	t = newTable(w, 0, 2, 3, 4, 5, 6)
	t.row("chunks", "index of words", "disk MB", "ingest ms a chunk", "lists MB", "segments", "put ms a chunk")
	for _, g := range list {
		t.row(fmt.Sprint(g.Chunks), "BM25 lists", tenths(float64(g.Index.Disk)/1e6), fmt.Sprintf("%.2f", g.Index.IngestMS),
			tenths(float64(g.Index.Bytes)/1e6), fmt.Sprint(g.Index.Segments), fmt.Sprintf("%.2f", g.PutMS))
		if g.TextSearch == nil {
			continue
		}
		t.row(fmt.Sprint(g.Chunks), eval.TextSearch+", GIN", tenths(float64(g.TextSearch.Disk)/1e6), fmt.Sprintf("%.2f", g.TextSearch.IngestMS), "", "", "")
	}
	t.print()
}

func printEval(w io.Writer, r *eval.Result) {
	fmt.Fprintf(w, "%s: %d documents\n", r.Set, r.Documents)
	if r.Growth != nil {
		printGrowth(w, r.Growth)
		return
	}
	if len(r.Rows) > 0 {
		printRows(w, r.Rows)
	}
	if len(r.Steps) > 0 {
		printDifferences(w, r.Steps)
	}
	if len(r.Spans) > 0 {
		printSpans(w, r.Spans)
	}
	if r.Answers != nil {
		printAnswers(w, r.Answers)
	}
	if r.Evidence != nil {
		printEvidence(w, r.Evidence)
	}
}

func printRows(w io.Writer, rows []eval.Row) {
	t := newTable(w, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
	t.row("pipeline", "questions", "nDCG@10", "95 %", "MRR@10", "R@5", "R@20", "R@100", "tokens", "dense ms", "lexical ms", "fuse ms", "rerank ms")
	for _, row := range rows {
		t.row(row.Pipeline, fmt.Sprint(row.Queries), points(row.NDCG10), between(row.Intervals["ndcg@10"]),
			points(row.MRR10), points(row.Recall5), points(row.Recall20), points(row.Recall100), fmt.Sprintf("%.0f", row.ContextTokens),
			tenths(row.MS.Dense), tenths(row.MS.Lexical), tenths(row.MS.Fuse), tenths(row.MS.Rerank))
	}
	t.print()
}

func printSpans(w io.Writer, rows []eval.SpanRow) {
	t := newTable(w, 1, 3, 4, 5, 6, 7, 8, 9)
	t.row("chunk", "chunks", "pipeline", "questions", "budget", "recall", "95 %", "precision", "IoU", "tokens")
	for _, r := range rows {
		t.row(fmt.Sprintf("%d/%d", r.Chunk, r.Overlap), fmt.Sprint(r.Chunks), r.Pipeline, fmt.Sprint(r.Queries), fmt.Sprint(r.Budget),
			points(r.Recall), between(r.RecallInterval), points(r.Precision), points(r.IoU), fmt.Sprintf("%.0f", r.Tokens))
	}
	t.print()
}

func printAnswers(w io.Writer, a *eval.Answers) {
	fmt.Fprintf(w, "%d questions answered, %.0f tokens in, %.0f out on the mean\n", a.Questions, a.InputTokens, a.OutputTokens)
	t := newTable(w, 1, 2)
	t.row("metric", "mean", "95 %")
	for _, m := range []struct {
		name  string
		value *float64
	}{
		{"em", a.EM},
		{"f1", a.F1},
		{"contains", a.Contains},
		{"citation_precision", a.CitationPrecision},
		{"citation_recall", a.CitationRecall},
		{"answered", a.Answered},
		{"refusal_accuracy", a.RefusalAccuracy},
	} {
		if m.value != nil {
			t.row(m.name, points(*m.value), between(a.Intervals[m.name]))
		}
	}
	t.print()
}

func printEvidence(w io.Writer, e *eval.Evidence) {
	fmt.Fprintf(w, "\nevidence against questions of %s\nown      cosine %v\n         words  %v\nforeign  cosine %v\n         words  %v\n",
		e.Strangers, e.Own.Cosine, e.Own.Words, e.Foreign.Cosine, e.Foreign.Words)
	t := newTable(w, 0, 1, 2)
	t.row("min_score", "answered", "refused")
	for _, b := range e.Bounds {
		t.row(fmt.Sprintf("%.2f", b.MinScore), points(b.Answered), points(b.Refused))
	}
	t.print()
}

func points(v float64) string { return fmt.Sprintf("%.3f", v) }
func tenths(v float64) string { return fmt.Sprintf("%.1f", v) }

func between(in [2]float64) string { return points(in[0]) + " … " + points(in[1]) }

func printComparison(w io.Writer, c *eval.Comparison) {
	fmt.Fprintf(w, "%s: %s → %s\n", c.Set, c.Commits[0], c.Commits[1])
	for _, s := range c.Settings {
		fmt.Fprintf(w, "  %s: %v → %v\n", s.Name, s.Before, s.After)
	}
	printDifferences(w, c.Rows)
	if len(c.Changed) == 0 {
		fmt.Fprintln(w, "no question changed")
		return
	}
	t := newTable(w, 3, 4)
	t.row("pipeline", "metric", "question", "before", "after")
	for _, q := range c.Changed {
		t.row(q.Pipeline, q.Metric, q.ID, points(q.Before), points(q.After))
	}
	t.print()
}

func printDifferences(w io.Writer, list []eval.Difference) {
	t := newTable(w, 2, 3, 4, 5, 6, 7, 8, 9)
	t.row("pipeline", "metric", "questions", "before", "after", "change", "95 %", "p", "better", "worse", "")
	for _, d := range list {
		mark := ""
		if d.Significant() {
			mark = "significant"
		}
		t.row(d.Pipeline, d.Metric, fmt.Sprint(d.Queries), points(d.Before), points(d.After), fmt.Sprintf("%+.3f", d.After-d.Before),
			between(d.Interval), fmt.Sprintf("%.4f", d.P), fmt.Sprint(d.Better), fmt.Sprint(d.Worse), mark)
	}
	t.print()
}
