package eval

import (
	"math"
	"testing"
)

func TestScoreOfAnAnswer(t *testing.T) {
	q := Query{ID: "q", Text: "what?", Gain: map[string]float64{"a": 1, "b": 1}, Answers: []string{"blue"}}
	s := score(q, Reply{Text: "The pump is blue. [1] [2, 3]", Cited: []string{"a", "x", "a"}})
	if s.Contains != 1 || s.EM != 0 || *s.CitationPrecision != 0.5 || s.CitationRecall != 0.5 {
		t.Errorf("%+v", s)
	}
	if s := score(q, Reply{Text: "Blue [1]."}); s.EM != 1 || s.F1 != 1 || s.CitationPrecision != nil || s.CitationRecall != 0 {
		t.Errorf("markers are words of the answer, or no citation is one: %+v", s)
	}
	if s := score(q, Reply{Text: "blue", Refused: true}); s.F1 != 0 || s.Contains != 0 {
		t.Errorf("a refusal scores: %+v", s)
	}
}

// Worked by hand.
func TestSumOfAnswers(t *testing.T) {
	half := 0.5
	a := &Answers{PerQuery: []AnswerScore{
		{ID: "1", Match: Match{EM: 1, F1: 1, Contains: 1}, CitationPrecision: &half, CitationRecall: 1, InputTokens: 100, OutputTokens: 10},
		{ID: "2", Refused: true},
		{ID: "3", Unanswerable: true, Refused: true},
		{ID: "4", Unanswerable: true, CitationRecall: 0, InputTokens: 300, OutputTokens: 30},
	}}
	a.sum()
	for name, pair := range map[string][2]float64{
		"em": {*a.EM, .5}, "f1": {*a.F1, .5}, "contains": {*a.Contains, .5}, "precision": {*a.CitationPrecision, .5},
		"recall": {*a.CitationRecall, .5}, "refusal": {*a.RefusalAccuracy, .5}, "answered": {*a.Answered, .5},
		"input": {a.InputTokens, 100}, "output": {a.OutputTokens, 10},
	} {
		if math.Abs(pair[0]-pair[1]) > 1e-9 {
			t.Errorf("%s is %g, want %g", name, pair[0], pair[1])
		}
	}
	none := &Answers{PerQuery: []AnswerScore{{ID: "1", Unanswerable: true, Refused: true}}}
	none.sum()
	if none.F1 != nil || none.CitationPrecision != nil || *none.RefusalAccuracy != 1 {
		t.Errorf("%+v", none)
	}
}

func TestSample(t *testing.T) {
	var list []Query
	for i := range 100 {
		list = append(list, Query{ID: string(rune('0' + i)), Unanswerable: i%10 == 0})
	}
	got := sample(list, 20)
	bad := 0
	for _, q := range got {
		if q.Unanswerable {
			bad++
		}
	}
	if len(got) != 20 || bad != 10 {
		t.Errorf("%d questions, %d unanswerable", len(got), bad)
	}
	if got := sample(list[1:10], 20); len(got) != 9 {
		t.Errorf("%d of 9", len(got))
	}
}
