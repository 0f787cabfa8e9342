package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ragd/internal/config"
	"ragd/internal/eval"
)

func TestEvalFlags(t *testing.T) {
	good := evalFlags{sel: eval.Selection{Every: 1}, half: "all", pipelines: eval.Pipelines, cut: 512, budgets: []int{512}, counted: "answer", mode: "auto"}
	if err := good.check(1); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*evalFlags){
		"--pipelines":      func(f *evalFlags) { f.pipelines = []string{"guess"} },
		"--half":           func(f *evalFlags) { f.half = "third" },
		"--passage-tokens": func(f *evalFlags) { f.cut = 1 },
		"--every":          func(f *evalFlags) { f.sel.Every = 0 },
		"--grow":           func(f *evalFlags) { f.grow = []int{100, 0} },
		"--answers":        func(f *evalFlags) { f.answers = -1 },
		"--answer-mode":    func(f *evalFlags) { f.mode = "guess" },
		"--budgets":        func(f *evalFlags) { f.budgets = nil },
		"--budget-model":   func(f *evalFlags) { f.counted = "neither" },
		"--compare":        func(f *evalFlags) { f.compare = true },
	} {
		f := good
		change(&f)
		if err := f.check(1); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
	if err := good.check(2); err == nil || !strings.Contains(err.Error(), "--compare") {
		t.Errorf("two folders: %v", err)
	}
	for _, text := range []string{"big", "256/", "16", "64/64", "1024"} {
		f := evalFlags{chunks: []string{text}}
		if _, err := f.cuts(config.Default()); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("chunks %q: %v", text, err)
		}
	}
	f := evalFlags{chunks: []string{"128", "256/64"}}
	if got, err := f.cuts(config.Default()); err != nil || len(got) != 2 || got[1].Target != 256 || got[1].Overlap != 64 {
		t.Errorf("%+v, %v", got, err)
	}
}

// What a run leaves tells how it was made, without its secrets.
func TestReportFile(t *testing.T) {
	cfg := config.Default()
	cfg.Database.URL, cfg.Server.Keys = "postgres://me:secret@here/db", []string{"secret"}
	f := evalFlags{half: "odd", cut: 256}
	settings, err := f.settings(cfg)
	if err != nil {
		t.Fatal(err)
	}
	report := eval.Report{Result: &eval.Result{Set: "tiny ko-en"}, Commit: "abc", Config: settings}
	path, err := f.keep(t.TempDir(), report)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(filepath.Base(path), "tiny-ko-en") {
		t.Fatalf("%s: %v", path, err)
	}
	for _, want := range []string{`"commit": "abc"`, fmt.Sprintf(`"min_score": %v,`, cfg.Retrieve.MinScore), `"passage_tokens": 256`, `"half": "odd"`, `"chunk_tokens"`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %s in the report", want)
		}
	}
	if strings.Contains(string(text), "secret") {
		t.Error("the report tells a secret")
	}
}

func TestCompareCommand(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"a.json":   `{"set":"tiny","commit":"old","rows":[{"pipeline":"fused","queries":1,"per_query":[{"id":"q7","ndcg@10":0.5}]}]}`,
		"b.json":   `{"set":"tiny","commit":"new","rows":[{"pipeline":"fused","queries":1,"per_query":[{"id":"q7","ndcg@10":0.75}]}]}`,
		"bad.json": `{"set":`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a, b := filepath.Join(dir, "a.json"), filepath.Join(dir, "b.json")
	cmd := newRoot()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetArgs([]string{"eval", "--compare", a, b})
	if err := cmd.Execute(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"old → new", "ndcg@10", "+0.250", "q7"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	for want, args := range map[string][]string{"bad.json": {a, filepath.Join(dir, "bad.json")}, "none.json": {filepath.Join(dir, "none.json"), b}} {
		cmd := newRoot()
		cmd.SetArgs(append([]string{"eval", "--compare"}, args...))
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

func TestPrintEval(t *testing.T) {
	var out bytes.Buffer
	printEval(&out, &eval.Result{Set: "tiny", Documents: 3, Steps: []eval.Difference{{Pipeline: "dense → fused", Before: 0.25, After: 0.5, P: 0.01}}, Rows: []eval.Row{
		{Pipeline: "fused", Queries: 7, Metrics: eval.Metrics{NDCG10: 0.5}, Intervals: map[string][2]float64{"ndcg@10": {0.41, 0.62}}, ContextTokens: 321, MS: eval.MS{Lexical: 1.25}},
	}})
	for _, want := range []string{"tiny: 3 documents", "fused", "0.500", "0.410 … 0.620", "321", "1.2", "dense → fused", "+0.250", "significant"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	out.Reset()
	half := 0.5
	printEval(&out, &eval.Result{
		Set: "tiny", Spans: []eval.SpanRow{{Chunk: 256, Overlap: 64, Pipeline: "default", Budget: 512, Recall: 0.875}},
		Answers: &eval.Answers{Questions: 9, F1: &half},
	})
	for _, want := range []string{"256/64", "0.875", "9 questions", "f1", "0.500"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "refusal_accuracy") {
		t.Errorf("a metric that was not measured:\n%s", out.String())
	}
	out.Reset()
	printEval(&out, &eval.Result{Set: "tiny", Growth: []eval.Growth{{Chunks: 1000, Rows: []eval.Percentile{{Pipeline: "lexical", P50: 2, P95: 9.5}}}}})
	if !strings.Contains(out.String(), "1000") || !strings.Contains(out.String(), "9.5") {
		t.Errorf("growth:\n%s", out.String())
	}
}
