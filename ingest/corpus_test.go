package ingest_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"ragd/ingest"
)

// TestExampleCorpus holds that every example is indexed without loss and that
// the example questions have their answers where they say.
func TestExampleCorpus(t *testing.T) {
	r := newRoad(t, nil)
	report, err := r.run(t.Context(), "../examples/corpus")
	if err != nil || report.Found < 14 || report.Indexed != report.Found {
		t.Fatalf("%v: %+v", err, report)
	}
	for _, f := range report.Files {
		if legacy := strings.HasSuffix(f.Path, "-cp949.txt"); f.Status != ingest.Indexed || legacy != (f.Charset == "cp949") || legacy != (len(f.Warnings) == 1) {
			t.Errorf("%+v", f)
		}
	}
	data, err := os.ReadFile("../examples/questions.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var q struct {
			Question, Document string
			MustContain        string `json:"must_contain"`
		}
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			t.Fatal(err)
		}
		if text := r.stored(q.Document).Document.Text; q.Question == "" || !strings.Contains(text, q.MustContain) {
			t.Errorf("%s does not hold %q", q.Document, q.MustContain)
		}
	}
}
