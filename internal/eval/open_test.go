package eval

import (
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// folderOf writes files; names that end in .gz are packed.
func folderOf(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "tiny")
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := os.Create(path)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".gz") {
			z := gzip.NewWriter(f)
			_, err = z.Write([]byte(text))
			err = errors.Join(err, z.Close())
		} else {
			_, err = f.WriteString(text)
		}
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestOpen(t *testing.T) {
	beir := []Document{{"d1", "Pumps", "They are blue."}, {"d2", "", "밸브는 잠겨 있다."}}
	for name, c := range map[string]struct {
		files map[string]string
		lang  Languages
		want  Set
	}{
		"BEIR": {
			map[string]string{
				"corpus.jsonl.gz":  `{"_id":"d1","title":"Pumps","text":"They are blue."}` + "\n" + `{"_id":"d2","text":"밸브는 잠겨 있다."}`,
				"queries.jsonl":    `{"_id":"q1","text":"blue?"}` + "\n" + `{"_id":"q2","text":"unjudged"}`,
				"qrels/test.tsv":   "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\n",
				"something-else.x": "",
			},
			"",
			Set{"tiny", beir, []Query{{ID: "q1", Text: "blue?", Gain: map[string]float64{"d1": 2}}}},
		},
		"BEIR with TREC judgements": {
			map[string]string{
				"corpus.jsonl":    `{"_id":"d1","title":"Pumps","text":"They are blue."}` + "\n" + `{"_id":"d2","text":"밸브는 잠겨 있다."}`,
				"queries.tsv":     "1\tblue?\n3\t밸브\n",
				"qrels.test.txt":  "1 0 d1 1\n3 0 d2 1\n",
				"claims_train.gz": "",
			},
			"",
			Set{"tiny", beir, []Query{
				{ID: "1", Text: "blue?", Gain: map[string]float64{"d1": 1}},
				{ID: "3", Text: "밸브", Gain: map[string]float64{"d2": 1}, Group: 1},
			}},
		},
		"SQuAD": {
			map[string]string{"dev.json.gz": `{"data":[
				{"title":"A","paragraphs":[{"context":"one","qas":[{"id":"x","question":"1?"}]},{"context":"two","qas":[]}]},
				{"title":"B","paragraphs":[{"context":"one","qas":[{"id":"y","question":"again?"}]}]}]}`},
			"",
			Set{"tiny", []Document{{"0/0", "A", "one"}, {"0/1", "A", "two"}}, []Query{
				{ID: "x", Text: "1?", Gain: map[string]float64{"0/0": 1}},
				{ID: "y", Text: "again?", Gain: map[string]float64{"0/0": 1}, Group: 1},
			}},
		},
		"SQuAD with answers": {
			map[string]string{"dev.json": `{"data":[{"title":"A","paragraphs":[{"context":"one","qas":[{"id":"x","question":"1?","answers":[{"text":"on"},{"text":"one"}]}]}]}]}`},
			"",
			Set{"tiny", []Document{{"0/0", "A", "one"}}, []Query{{ID: "x", Text: "1?", Gain: map[string]float64{"0/0": 1}, Answers: []string{"on", "one"}}}},
		},
		"MTRAG": {
			map[string]string{"reference.jsonl": `
				{"task_id":"c<::>2","conversation_id":"c","contexts":[{"document_id":"p","title":"T","text":"one"}],"answerability":["ANSWERABLE"],
				 "input":[{"speaker":"user","text":"hi"},{"speaker":"agent","text":"ho"},{"speaker":"user","text":"1?"}],"targets":[{"text":"one"}]}
				{"task_id":"d<::>1","conversation_id":"d","contexts":[{"document_id":"q","text":"two"},{"document_id":"p","text":"one"}],"answerability":["PARTIAL"],"input":[{"speaker":"user","text":"half?"}]}
				{"task_id":"e<::>1","conversation_id":"e","contexts":[],"answerability":["UNANSWERABLE"],"input":[{"speaker":"user","text":"none?"}],"targets":[{"text":"I do not know"}]}`},
			"",
			Set{"tiny", []Document{{"p", "T", "one"}, {"q", "", "two"}}, []Query{
				{ID: "c<::>2", Text: "1?", Gain: map[string]float64{"p": 1}, Answers: []string{"one"}, History: []Turn{{"user", "hi"}, {"assistant", "ho"}}},
				{ID: "e<::>1", Text: "none?", Gain: map[string]float64{}, Unanswerable: true, Group: 2},
			}},
		},
		"RGB": {
			map[string]string{"en_fact.json.gz": `
				{"id":0,"query":"where?","answer":[["Here","There"]],"positive":["Here it is.","No."],"negative":["No."],"positive_wrong":["Wrong."]}
				{"id":1,"query":"who?","answer":"Me","positive":["It is me."],"negative":["Nobody."]}`},
			"",
			Set{"tiny", []Document{{"0/negative/0", "", "No."}, {"0/positive/0", "", "Here it is."}, {"1/negative/0", "", "Nobody."}}, []Query{
				{ID: "0", Text: "where?", Gain: map[string]float64{"0/positive/0": 1, "0/negative/0": 1}, Answers: []string{"Here", "There"}},
				{ID: "1", Text: "who?", Gain: map[string]float64{}, Unanswerable: true},
			}},
		},
		"Cranfield": {
			map[string]string{
				"cran.all.gz": ".I 1\n.T\nwings .\n.A\nsomebody\n.W\nwings .\nin a\nstream .\n.I 2\n.T\n\n.W\nplates\n",
				"cran.qry":    ".I 001\n.W\nwhat wings\n.I 004\n.W\nwhich\nplates\n",
				"cranqrel":    "1 1 1 \n2 2 4\n2 1 -1\n",
			},
			"",
			Set{"tiny", []Document{{"1", "wings .", "wings .\nin a\nstream ."}, {"2", "", "plates"}}, []Query{
				{ID: "001", Text: "what wings", Gain: map[string]float64{"1": 4}, Ignored: map[string]bool{}},
				{ID: "004", Text: "which\nplates", Gain: map[string]float64{"2": 1}, Ignored: map[string]bool{"1": true}, Group: 1},
			}},
		},
		"TREC": {
			map[string]string{
				"doc-text.trec":   "<DOC>\n<DOCNO>1</DOCNO>\nmemory\n</DOC>\n<DOC>\n<DOCNO>2</DOCNO>\nwaves\n</DOC>\n",
				"query-text.trec": "<top>\n<num>1</num><title>\nLONG WAVES\n</title>\n</top>\n",
				"qrels":           "1 0 2 1\n",
			},
			"",
			Set{"tiny", []Document{{"1", "", "memory"}, {"2", "", "waves"}}, []Query{{ID: "1", Text: "long waves", Gain: map[string]float64{"2": 1}}}},
		},
		"parallel": {
			map[string]string{
				"x_kor.json": `[{"id":1,"query":"물은?","positive":["물"]}]`,
				"x_eng.json": `[{"id":1,"query":"water?","positive":["water","wet"]}]`,
			},
			"ko-en",
			Set{"tiny ko-en", []Document{{"0", "", "water"}, {"1", "", "wet"}}, []Query{{ID: "1", Text: "물은?", Gain: map[string]float64{"0": 1, "1": 1}}}},
		},
	} {
		got, err := Open(folderOf(t, c.files), c.lang)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff(c.want, *got); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func TestOpenNamesWhatIsWrong(t *testing.T) {
	for name, files := range map[string]map[string]string{
		"nothing":          {"readme.txt": "x"},
		"no judgements":    {"corpus.jsonl": `{"_id":"d","text":"x"}`, "queries.tsv": "1\tx\n"},
		"bad judgement":    {"corpus.jsonl": `{"_id":"d","text":"x"}`, "queries.tsv": "1\tx\n", "qrels.tsv": "1\td\tmuch\n"},
		"bad question":     {"corpus.jsonl": `{"_id":"d","text":"x"}`, "queries.tsv": "no tab\n", "qrels.tsv": "1\td\t1\n"},
		"nothing relevant": {"corpus.jsonl": `{"_id":"d","text":"x"}`, "queries.tsv": "1\tx\n", "qrels.tsv": "2\td\t1\n"},
		"place":            {"cran.all": ".I 1\n.W\nx\n", "cran.qry": ".I 1\n.W\nx\n", "cranqrel": "7 1 1\n"},
	} {
		if _, err := Open(folderOf(t, files), ""); !errors.Is(err, ErrSet) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Open(folderOf(t, map[string]string{"a_kor.json": "[]"}), "ko-fr"); !errors.Is(err, ErrSet) {
		t.Errorf("languages: %v", err)
	}
	if _, err := Open(folderOf(t, map[string]string{"corpus.jsonl": "{"}), ""); err == nil {
		t.Error("cut JSON was read")
	}
}

func TestSelect(t *testing.T) {
	s := &Set{Name: "s", Documents: []Document{{ID: "a"}, {ID: "b"}, {ID: "c"}, {ID: "d"}}}
	for i, id := range []string{"d", "c", "d", "b"} {
		s.Queries = append(s.Queries, Query{ID: id, Gain: map[string]float64{id: 1}, Group: i})
	}
	for name, c := range map[string]struct {
		sel             Selection
		documents, asks string
	}{
		"all":               {Selection{}, "abcd", "dcdb"},
		"relevant first":    {Selection{Documents: 2}, "bc", "cb"},
		"every second":      {Selection{Every: 2}, "abcd", "dd"},
		"odd half":          {Selection{Half: Odd}, "abcd", "cb"},
		"even, every third": {Selection{Half: Even, Every: 3}, "abcd", "d"},
	} {
		got, err := s.Select(c.sel)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		docs, asks := "", ""
		for _, d := range got.Documents {
			docs += d.ID
		}
		for _, q := range got.Queries {
			asks += q.ID
		}
		if docs != c.documents || asks != c.asks {
			t.Errorf("%s: documents %s, questions %s; want %s, %s", name, docs, asks, c.documents, c.asks)
		}
	}
	if _, err := (&Set{Queries: []Query{{}}}).Select(Selection{}); !errors.Is(err, ErrSet) {
		t.Error("a set without an answer was selected")
	}
}

func FuzzRecords(f *testing.F) {
	f.Add("<DOC>\n<DOCNO>1</DOCNO>x</DOC>", "DOC")
	f.Add("<top><num>", "top")
	f.Fuzz(func(t *testing.T, text, name string) {
		n := 0
		if err := records(strings.NewReader(text), name, func(string) { n++ }); err != nil || n > len(text) {
			t.Errorf("%d records, %v", n, err)
		}
	})
}
