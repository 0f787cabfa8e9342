package answer

import (
	"testing"

	"pgregory.net/rapid"

	"ragd/prompt/budget"
)

// What telemetry keeps of a ledger sums up to what the ledger says.
func TestTelemetryKeepsTheLedger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		count := rapid.IntRange(0, 5000)
		l := budget.Ledger{
			Template: count.Draw(t, "template"), System: count.Draw(t, "system"), History: count.Draw(t, "history"),
			Tools: count.Draw(t, "tools"), Question: count.Draw(t, "question"),
		}
		for i := range rapid.IntRange(0, 6).Draw(t, "evidence") {
			l.Evidence = append(l.Evidence, budget.Item{ChunkID: int64(i), Tokens: count.Draw(t, "tokens")})
		}
		want := map[string][2]int{}
		for i := range rapid.IntRange(0, 20).Draw(t, "dropped") {
			d := budget.Dropped{ChunkID: int64(i), Tokens: count.Draw(t, "tokens"), Reason: rapid.SampledFrom(reasons[:]).Draw(t, "reason")}
			l.Dropped = append(l.Dropped, d)
			sum := want[string(d.Reason)]
			want[string(d.Reason)] = [2]int{sum[0] + 1, sum[1] + d.Tokens}
		}
		p := promptTokens(l)
		sum := p.Template + p.System + p.History + p.Tools + p.Question
		for _, n := range p.Evidence {
			sum += n
		}
		if sum != l.Input() {
			t.Fatalf("%+v sums to %d, the ledger to %d", p, sum, l.Input())
		}
		got := droppedBy(l)
		if len(got) != len(want) {
			t.Fatalf("%d reasons, want %d", len(got), len(want))
		}
		for _, d := range got {
			if want[d.Reason] != [2]int{d.Chunks, d.Tokens} {
				t.Fatalf("%s: %+v, want %v", d.Reason, d, want[d.Reason])
			}
		}
	})
}
