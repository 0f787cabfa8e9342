package schedule

import (
	"cmp"
	"time"
)

// Hurried is how many of the running sequences, from the first, a step is for that is
// in a hurry, or 0 when it is not. In a hurry prompts are read as fast as they can be,
// not only as fast as keeps the gaps of the answers short, and those behind have to
// wait. It is when a prompt was promised its first token by a time (Job.By) and would
// not be read by then otherwise. At is the present.
func (o Outlook) Hurried(running []Job, at time.Time) (first int) {
	if !o.Cost.Known() {
		return 0
	}
	ahead, deepest, last, decoding := 0.0, 0, 0, false
	for i, j := range running {
		if decoding = decoding || j.Prompt == 0; j.Prompt > 0 {
			deepest, last = max(deepest, j.Done), i
		}
	}
	for i, j := range running {
		if j.Prompt == 0 {
			continue
		}
		ahead += float64(j.Prompt) * o.Weight(j.Done+j.Prompt/2)
		if left := j.By.Sub(at); j.By.IsZero() {
			continue
		} else if pace := o.pace(deepest, decoding, i < last); pace > 0 && ahead/pace > margin*left.Seconds() {
			first = i + 1
		}
	}
	return first
}

// pace is the weight of rows that is read in a second without hurry, beside answers,
// or shared with a prompt behind, which has as many rows of a step; 0 for as fast as
// can be.
func (o Outlook) pace(depth int, decoding, shared bool) float64 {
	switch {
	case decoding:
		weight := float64(o.Rows(depth, true)) * o.Weight(depth)
		return weight / o.Cost.step(weight, true, false).Seconds()
	case shared:
		return 0.5 / cmp.Or(o.Cost.Alone, o.Cost.Beside).Seconds()
	}
	return 0
}

// Hurried are the limits of a step in a hurry, beside so many answers: a piece of one
// prompt, so that the first has the machine for itself.
func (l Limits) Hurried(answers int) Limits {
	l.StepTokens = max(l.Running, min(l.StepTokens, answers+l.PieceTokens))
	return l
}
