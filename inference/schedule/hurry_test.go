package schedule

import (
	"testing"
	"time"
)

func TestHurried(t *testing.T) {
	now := time.Unix(1000, 0)
	in := func(d time.Duration) time.Time { return now.Add(d) }
	answer := Job{Done: 9, Answer: 100}
	for name, c := range map[string]struct {
		running []Job
		want    int
	}{
		"nothing runs":            {nil, 0},
		"nothing promised":        {[]Job{answer, {Prompt: 5000}}, 0},
		"alone it cannot be late": {[]Job{{Prompt: 5000, By: in(tick)}}, 0},
		// Beside answers 10 rows take 5 + 20 ms, so 100 of them 250 ms.
		"time enough beside an answer":    {[]Job{answer, {Prompt: 100, By: in(300 * tick)}}, 0},
		"too little":                      {[]Job{answer, {Prompt: 100, By: in(280 * tick)}}, 2},
		"with those ahead":                {[]Job{answer, {Prompt: 50}, {Prompt: 100, By: in(300 * tick)}}, 3},
		"those behind are not in it":      {[]Job{answer, {Prompt: 100, By: in(280 * tick)}, {Prompt: 50}}, 2},
		"the last of several":             {[]Job{answer, {Prompt: 100, By: in(280 * tick)}, {Prompt: 50, By: in(100 * tick)}}, 3},
		"over":                            {[]Job{answer, {Prompt: 1, By: in(-tick)}}, 2},
		"shared with one behind":          {[]Job{{Prompt: 100, By: in(200 * tick)}, {Prompt: 100}}, 1},
		"shared, but there is time":       {[]Job{{Prompt: 100, By: in(300 * tick)}, {Prompt: 100}}, 0},
		"the one behind has it to itself": {[]Job{{Prompt: 100}, {Prompt: 100, By: in(tick)}}, 0},
	} {
		if got := outlook().Hurried(c.running, now); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	o := outlook()
	o.Cost = Cost{}
	if got := o.Hurried([]Job{answer, {Prompt: 100, By: in(tick)}}, now); got != 0 {
		t.Errorf("a hurry with costs that nobody knows: %d", got)
	}
}

// A prompt that was promised its first token is forecast to be read in a hurry, whoever
// decodes and whoever comes behind; steady engines forecast none.
func TestForecastHurries(t *testing.T) {
	now := time.Unix(1000, 0)
	o := outlook()
	o.Now, o.Running = now, []Job{{Done: 9, Answer: 1000}}
	o.Limits.Running = 3
	job := Job{Prompt: 100, By: now}
	// A piece of 50 beside the answer takes 5 + 50 ms, in the price of rows alone.
	if got, want := o.FirstToken(job), 5*tick+2*55*tick; got != want {
		t.Errorf("hurried: %v, want %v", got, want)
	}
	o.Cost.Hurried = 3 * tick
	if got, want := o.FirstToken(job), 5*tick+2*155*tick; got != want {
		t.Errorf("hurried at its own price: %v, want %v", got, want)
	}
	o.Steady = true
	if got, want := o.FirstToken(job), 5*tick+10*25*tick; got != want {
		t.Errorf("steady: %v, want %v", got, want)
	}
	// One that has been promised and is in a hurry goes first.
	o = outlook()
	o.Now, o.Running = now, []Job{{Prompt: 100, Answer: 1, By: now}}
	if got, want := o.FirstToken(Job{Prompt: 50}), 100*tick+55*tick; got < want || got > want+50*tick {
		t.Errorf("behind one in a hurry: %v, want about %v", got, want)
	}
}
