package answer

import (
	"ragd/prompt/budget"
	"ragd/telemetry"
	"ragd/telemetry/cost"
)

// used is what a request took of the engine, which read the prompt or did not; a
// question that the model wrote anew counts too.
func (u Usage) used(submitted bool, m Machine) cost.Used {
	out := cost.Used{CachedTokens: u.CachedTokens, OutputTokens: u.OutputTokens, Prefill: m.Prefill, Decode: m.Decode}
	if submitted {
		out.InputTokens = u.InputTokens
	}
	if r := u.Rewrite; r != nil {
		out.InputTokens += r.InputTokens
		out.CachedTokens += r.CachedTokens
		out.OutputTokens += r.OutputTokens
	}
	return out
}

// counted takes over the count of a server that rendered the prompt itself.
func (u *Usage) counted(tokens int) {
	if tokens > 0 && tokens != u.InputTokens {
		u.InputTokens, u.Ledger = tokens, u.Ledger.Scaled(tokens)
	}
}

// call is what the call to the model came to.
func (u *Usage) call(finish string) telemetry.Call {
	return telemetry.Call{InputTokens: u.InputTokens, OutputTokens: u.OutputTokens, CachedTokens: u.CachedTokens, FinishReason: finish}
}

// promptTokens is the ledger as telemetry keeps it.
func promptTokens(l budget.Ledger) telemetry.PromptTokens {
	p := telemetry.PromptTokens{
		Template: l.Template, System: l.System, History: l.History, Tools: l.Tools, Question: l.Question,
		Evidence: make([]int, len(l.Evidence)),
	}
	for i, e := range l.Evidence {
		p.Evidence[i] = e.Tokens
	}
	return p
}

// reasons is the order in which dropped chunks are summed up.
var reasons = [...]budget.Reason{
	budget.Duplicate, budget.BelowThreshold, budget.OverBudget, budget.OverTTFT, budget.MaxChunks, budget.Filtered,
}

// droppedBy sums up what was not presented, by reason.
func droppedBy(l budget.Ledger) []telemetry.Dropped {
	out := []telemetry.Dropped{}
	for _, reason := range reasons {
		sum := telemetry.Dropped{Reason: string(reason)}
		for _, d := range l.Dropped {
			if d.Reason == reason {
				sum.Chunks++
				sum.Tokens += d.Tokens
			}
		}
		if sum.Chunks > 0 {
			out = append(out, sum)
		}
	}
	return out
}
