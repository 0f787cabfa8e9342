package eval

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// The golden file says which scripts made it.
func TestMatchAgainstPublishedScripts(t *testing.T) {
	text, err := os.ReadFile("testdata/match.golden.json")
	if err != nil {
		t.Fatal(err)
	}
	type want struct{ EM, F1 float64 }
	var golden struct {
		Cases []struct {
			Prediction, Gold string
			SQuAD, KorQuAD   want
		}
	}
	if err := json.Unmarshal(text, &golden); err != nil || len(golden.Cases) < 20 {
		t.Fatalf("%d cases: %v", len(golden.Cases), err)
	}
	for _, c := range golden.Cases {
		for question, w := range map[string]want{"who?": c.SQuAD, "누구?": c.KorQuAD} {
			got := match(question, c.Prediction, []string{c.Gold})
			if got.EM != w.EM || math.Abs(got.F1-w.F1) > 1e-9 {
				t.Errorf("%s %q for %q: EM %g, F1 %g; want %g, %g", question, c.Prediction, c.Gold, got.EM, got.F1, w.EM, w.F1)
			}
		}
	}
}

func TestMatchTakesTheBestGoldAnswer(t *testing.T) {
	got := match("when?", "It was on the 21 July 2017.", []string{"July 21, 2017", "21 July 2017"})
	if got.Contains != 1 || got.EM != 0 || math.Abs(got.F1-2*3/6.0*1/(3/6.0+1)) > 1e-9 {
		t.Errorf("%+v", got)
	}
	if got := match("when?", "", nil); got != (Match{}) {
		t.Errorf("without gold answers: %+v", got)
	}
	if got := match("who?", "", []string{""}); got.Contains != 0 {
		t.Errorf("an empty gold answer is contained: %+v", got)
	}
}
