package main

import (
	"bytes"
	"strings"
	"testing"

	"ragd/internal/eval"
)

func TestEvalFlags(t *testing.T) {
	good := evalFlags{sel: eval.Selection{Every: 1}, half: "all", pipelines: eval.Pipelines, cut: 512}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*evalFlags){
		"--pipelines":      func(f *evalFlags) { f.pipelines = []string{"guess"} },
		"--half":           func(f *evalFlags) { f.half = "third" },
		"--passage-tokens": func(f *evalFlags) { f.cut = 1 },
		"--every":          func(f *evalFlags) { f.sel.Every = 0 },
		"--grow":           func(f *evalFlags) { f.grow = []int{100, 0} },
	} {
		f := good
		change(&f)
		if err := f.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

func TestPrintEval(t *testing.T) {
	var out bytes.Buffer
	printEval(&out, &eval.Result{Set: "tiny", Documents: 3, Rows: []eval.Row{
		{Pipeline: "fused", Queries: 7, Metrics: eval.Metrics{NDCG10: 0.5}, NDCG10Interval: [2]float64{0.4, 0.6}, MS: eval.MS{Lexical: 1.25}},
	}})
	for _, want := range []string{"tiny: 3 documents", "fused", "0.500", "0.100", "1.2"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, out.String())
		}
	}
	out.Reset()
	printEval(&out, &eval.Result{Set: "tiny", Growth: []eval.Growth{{Chunks: 1000, Rows: []eval.Percentile{{Pipeline: "lexical", P50: 2, P95: 9.5}}}}})
	if !strings.Contains(out.String(), "1000") || !strings.Contains(out.String(), "9.5") {
		t.Errorf("growth:\n%s", out.String())
	}
}
