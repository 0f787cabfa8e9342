package eval

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ragd/ingest"
)

func TestOpenSpans(t *testing.T) {
	dir := folderOf(t, map[string]string{
		"questions_df.csv.gz": "question,references,corpus_id\n" +
			`which?,"[{""content"": ""é밸"", ""start_index"": 1, ""end_index"": 3}, {""start_index"": 3, ""end_index"": 4}]",notes` + "\n",
		"corpora/notes.md": "aé밸브b",
	})
	if !HoldsSpans(dir) {
		t.Error("not seen")
	}
	got, err := OpenSpans(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := &SpanSet{"tiny", []Document{{"notes", "notes", "aé밸브b"}}, []SpanQuery{
		{ID: "1", Text: "which?", Document: "notes", References: []ingest.Span{{Start: 1, End: 9}}},
	}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestOpenSpansRefuses(t *testing.T) {
	const head = "question,references,corpus_id\n"
	for name, csv := range map[string]string{
		"no question": head, "other columns": "a,b\n1,2\n", "empty": "",
		"beyond the text": head + `q,"[{""start_index"": 0, ""end_index"": 99}]",notes` + "\n",
		"backwards":       head + `q,"[{""start_index"": 2, ""end_index"": 1}]",notes` + "\n",
		"no reference":    head + "q,[],notes\n",
		"not JSON":        head + "q,nothing,notes\n",
		"out of folder":   head + `q,"[{""start_index"": 0, ""end_index"": 1}]",../notes` + "\n",
		"unknown corpus":  head + `q,"[{""start_index"": 0, ""end_index"": 1}]",other` + "\n",
	} {
		dir := folderOf(t, map[string]string{"questions_df.csv": csv, "corpora/notes.md": "abc"})
		if _, err := OpenSpans(dir); !errors.Is(err, ErrSet) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Worked by hand: two references of 10 and 20 bytes; shown are 5…25 and 15…35 of
// the document and 50 bytes of another.
func TestSpanMetrics(t *testing.T) {
	row := SpanRow{Queries: 1}
	q := SpanQuery{Document: "d", References: []ingest.Span{{Start: 0, End: 10}, {Start: 20, End: 40}}}
	row.add(q, []shown{
		{"d", ingest.Span{Start: 5, End: 25}, 7},
		{"d", ingest.Span{Start: 15, End: 35}, 7},
		{"e", ingest.Span{Start: 0, End: 50}, 9},
	})
	row.finish()
	for name, pair := range map[string][2]float64{
		"recall": {row.Recall, 20.0 / 30}, "precision": {row.Precision, 20.0 / 90}, "IoU": {row.IoU, 20.0 / (90 + 30 - 20)}, "tokens": {row.Tokens, 23},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-9 {
			t.Errorf("%s is %g, want %g", name, pair[0], pair[1])
		}
	}
	row = SpanRow{Queries: 1}
	row.add(q, nil)
	row.finish()
	if row.Recall != 0 || row.Precision != 0 || row.IoU != 0 {
		t.Errorf("nothing shown: %+v", row)
	}
}

func TestShortest(t *testing.T) {
	s := &SpanSet{
		Documents: []Document{{ID: "long", Text: "aaaa"}, {ID: "short", Text: "a"}, {ID: "middle", Text: "aa"}},
		Questions: []SpanQuery{{ID: "1", Document: "long"}, {ID: "2", Document: "middle"}, {ID: "3", Document: "short"}},
	}
	got := s.Shortest(2)
	if len(got.Documents) != 2 || len(got.Questions) != 2 || got.Questions[0].ID != "2" || s.Documents[0].ID != "long" {
		t.Errorf("%+v of %+v", got, s)
	}
	if s.Shortest(0) != s || s.Shortest(3) != s {
		t.Error("a set that is kept whole is another")
	}
}

func TestUnion(t *testing.T) {
	got := union([]ingest.Span{{Start: 5, End: 9}, {Start: 0, End: 3}, {Start: 3, End: 4}, {Start: 6, End: 7}})
	if d := cmp.Diff([]ingest.Span{{Start: 0, End: 4}, {Start: 5, End: 9}}, got); d != "" {
		t.Error(d)
	}
}
