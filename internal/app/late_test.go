package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"ragd/inference/cpu"
	"ragd/inference/encode"
	"ragd/ingest"
	"ragd/internal/config"
	"ragd/internal/testenv"
	"ragd/rerank"
)

// Late interaction with the encoder's states in int8 gives the scores of a float32
// forward pass in numpy (inference/model/testdata/reference.py says how they were made).
func TestLateAgainstReference(t *testing.T) {
	data, err := os.ReadFile("testdata/maxsim_golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Cases []struct {
			Question, Passage string
			Tokens            [2]int
			Score             float32
		}
	}
	if err := json.Unmarshal(data, &file); err != nil || len(file.Cases) != 16 {
		t.Fatalf("%d cases, %v", len(file.Cases), err)
	}
	for _, path := range []struct {
		cfg  cpu.Config
		most float64
	}{{cpu.Config{Float32: true}, 0.001}, {cpu.Config{}, 0.004}} {
		e := lateEncoder(t, path.cfg)
		worst := 0.0
		for first := 0; first < len(file.Cases); first += 8 { // the passages of one question
			cases := file.Cases[first : first+8]
			passages := make([]string, len(cases))
			for i := range cases {
				passages[i] = cases[i].Passage
			}
			scores, tokens := lateScores(t, e, cases[0].Question, passages)
			for i, c := range cases {
				if tokens[i] != c.Tokens {
					t.Errorf("%q, %q: %v tokens, reference %v", c.Question, c.Passage, tokens[i], c.Tokens)
				}
				d := math.Abs(float64(scores[i] - c.Score))
				if worst = max(worst, d); d > path.most {
					t.Errorf("%q, %q: %.5f, reference %.5f", c.Question, c.Passage, scores[i], c.Score)
				}
			}
		}
		t.Logf("float32 %v: off by %.6f at the most", path.cfg.Float32, worst)
	}
}

func lateEncoder(t *testing.T, cfg cpu.Config) *embedder {
	t.Helper()
	ops, err := cpu.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	e, err := encode.Open(t.Context(), testenv.Model(t, config.Default().Models.Embedding), ops, encode.Config{})
	if err != nil {
		t.Fatal(errors.Join(err, ops.Close()))
	}
	t.Cleanup(func() { e.Close() })
	return &embedder{e}
}

// lateScores compares a question with passages, and tells how many tokens of each.
func lateScores(t *testing.T, e *embedder, question string, passages []string) (scores []float32, tokens [][2]int) {
	t.Helper()
	_, states, _, err := lateEmbedder{e}.EmbedQueryStates(t.Context(), question)
	if err != nil {
		t.Fatal(err)
	}
	list, err := e.EmbedPassageStates(t.Context(), passages, slices.Repeat([]bool{true}, len(passages)), ingest.MaxStates(e.Dim()))
	if err != nil {
		t.Fatal(err)
	}
	pool := make([]ingest.States, len(list))
	for i := range list {
		pool[i] = *list[i].States
	}
	sim, err := rerank.NewMaxSim(states, e.Dim(), pool, rowProducts)
	if err != nil {
		t.Fatal(err)
	}
	scores, tokens = make([]float32, len(list)), make([][2]int, len(list))
	for i := range pool {
		if scores[i], err = sim.Score(&pool[i]); err != nil {
			t.Fatal(err)
		}
		tokens[i] = [2]int{len(states.Weights), pool[i].Tokens()}
	}
	return scores, tokens
}

// TestLateSwitchedOn: documents from before the switch are answered and told of, until
// reembed or ingest keeps their token states; a dump carries these.
func TestLateSwitchedOn(t *testing.T) {
	cfg := settings(t)
	dir := write(t, map[string]string{
		"crane.md": "# Cranes\n\nThe crane at dock four lifts fourteen tonnes.\n", "ko.md": "# 항구\n\n4번 부두의 기중기는 14톤을 든다.\n",
	})
	ingestWith(t, cfg, dir)
	late := cfg
	late.Rerank.Scorer = config.ScoreLate
	l := start(t, late)
	question := body{"question": "How much does the crane lift?", "answer_mode": "extract", "explain": true}
	res := l.asked(t, question)
	if want := (rerank.Report{Scorer: "late-interaction", Candidates: 2, Missing: 2}); res.Explain.Rerank != want || !strings.Contains(res.Answer, "fourteen") {
		t.Errorf("before: %+v, %q", res.Explain.Rerank, res.Answer)
	}
	if c := stateCheck(t, late); !strings.Contains(c.Found, "0 of 2") || !strings.Contains(c.Problem, `2 of the 2 chunks of "default"`) || !strings.Contains(c.Problem, "ragd reembed") {
		t.Errorf("before: %+v", c)
	}
	reports, err := l.Reembed(t.Context(), nil, nil)
	if err != nil || len(reports) != 1 || !reports[0].Switched || reports[0].Chunks != 2 {
		t.Fatalf("reembed: %+v, %v", reports, err)
	}
	if c := stateCheck(t, late); c.Problem != "" || !strings.Contains(c.Found, "2 of 2") {
		t.Errorf("after: %+v", c)
	}
	if r := l.ingest(t, "default", false, dir); r.Unchanged != 2 {
		t.Errorf("ingest after reembed: %+v", r)
	}
	checkLateAnswer(t, l, question)

	// Back and forth: without the switch ingest drops the states, with it they come again.
	ingestWith(t, cfg, dir)
	if c := stateCheck(t, late); !strings.Contains(c.Found, "0 of 2") {
		t.Errorf("switched off: %+v", c)
	}
	if r := l.ingest(t, "default", false, dir); r.Indexed != 2 {
		t.Errorf("switched on: %+v", r)
	}
	checkLateAnswer(t, l, question)
	if status, text := l.call(t, "/v1/rerank", body{"query": "How much does the crane lift?", "documents": []string{"A rope.", "The crane lifts fourteen tonnes."}}); status != 200 || strings.Index(text, `"index":1`) > strings.Index(text, `"index":0`) {
		t.Errorf("rerank of texts: %d %s", status, text)
	}

	var dump bytes.Buffer
	opts := Options{Version: "test", Log: slog.New(slog.DiscardHandler)}
	if err := Dump(t.Context(), tools(t, late), opts, &dump); err != nil {
		t.Fatal(err)
	}
	late.Database.URL = testenv.Database(t).Config().ConnString()
	if err := Restore(t.Context(), tools(t, late), opts, &dump, false); err != nil {
		t.Fatal(err)
	}
	checkLateAnswer(t, start(t, late), question)
}

func ingestWith(t *testing.T, cfg config.Config, dir string) {
	t.Helper()
	l := start(t, cfg)
	if r := l.ingest(t, "default", false, dir); r.Indexed != 2 {
		t.Fatalf("%+v", r)
	}
}

func checkLateAnswer(t *testing.T, l *live, question body) {
	t.Helper()
	res := l.asked(t, question)
	if want := (rerank.Report{Scorer: "late-interaction", Candidates: 2, Scored: 2}); res.Explain.Rerank != want || !strings.Contains(res.Answer, "fourteen") {
		t.Errorf("%+v, %q", res.Explain.Rerank, res.Answer)
	}
	for _, c := range res.Explain.Candidates {
		if c.Scores.Late == 0 || c.Scores.Late > 1 || c.Scores.RerankRank == 0 {
			t.Errorf("%s: %+v", c.Document, c.Scores)
		}
	}
}

func stateCheck(t *testing.T, cfg config.Config) Check {
	t.Helper()
	return checkOf(t, checkVectors(t.Context(), cfg), "token states")
}
