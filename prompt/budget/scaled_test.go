package budget

import (
	"testing"

	"pgregory.net/rapid"
)

// Whatever the server counts, the components sum to it and none is negative.
func TestScaled(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 5000)
		l := Ledger{Template: n.Draw(t, "template"), System: n.Draw(t, "system"), History: n.Draw(t, "history"), Question: n.Draw(t, "question"), Evidence: []Item{{Tokens: n.Draw(t, "first")}, {Tokens: n.Draw(t, "second")}}}
		total := rapid.IntRange(1, 40000).Draw(t, "total")
		before := l.Evidence[0].Tokens
		s := l.Scaled(total)
		if s.Input() != total || !s.Estimated {
			t.Fatalf("%+v sums to %d, want %d", s, s.Input(), total)
		}
		for _, part := range []int{s.Template, s.System, s.History, s.Question, s.Evidence[0].Tokens, s.Evidence[1].Tokens} {
			if part < 0 {
				t.Fatalf("%+v", s)
			}
		}
		if l.Evidence[0].Tokens != before {
			t.Fatal("the ledger it was made of changed")
		}
	})
}
