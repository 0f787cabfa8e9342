package schedule

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

const tick = time.Millisecond

func outlook() Outlook {
	return Outlook{
		Cost:   Cost{Decode: 5 * tick, Alone: tick, Beside: 2 * tick},
		Limits: Limits{Running: 2, StepTokens: 100, PieceTokens: 50},
		Rows: func(_ int, decoding bool) int {
			if decoding {
				return 10
			}
			return 1000
		},
		Weight: func(int) float64 { return 1 },
	}
}

func TestForecast(t *testing.T) {
	deep := func(o *Outlook) { o.Weight = func(depth int) float64 { return 1 + float64(depth)/100 } }
	for name, c := range map[string]struct {
		change func(*Outlook)
		job    Job
		want   time.Duration
	}{
		"alone: pieces of 50":         {func(*Outlook) {}, Job{Prompt: 120}, 120 * tick},
		"a piece costs a decode step": {func(*Outlook) {}, Job{Prompt: 2}, 5 * tick},
		"beside an answer: pieces of 10": {
			func(o *Outlook) { o.Running = []Job{{Done: 9, Answer: 1000}} }, Job{Prompt: 35}, 5*tick + (4*5+35*2)*tick,
		},
		"half of the step underway is over": {
			func(o *Outlook) { o.Running, o.Underway = []Job{{Done: 9, Answer: 1000}}, 3*tick }, Job{Prompt: 35}, 2*tick + (4*5+35*2)*tick,
		},
		"the answer ends: then alone": {
			func(o *Outlook) { o.Running = []Job{{Done: 9, Answer: 3}} }, Job{Prompt: 70}, 5*tick + (2*5+20*2)*tick + 50*tick,
		},
		"behind a prompt in the same steps": {
			// 50 of the one ahead, 50 of each, then the one ahead decodes, and 10 of mine.
			func(o *Outlook) { o.Running = []Job{{Prompt: 100, Answer: 9}} }, Job{Prompt: 60}, 50*tick + 100*tick + (5+20)*tick,
		},
		"no place: until the first answer ends": {
			func(o *Outlook) { o.Running = []Job{{Answer: 7}, {Answer: 1000}} }, Job{Prompt: 10}, 7*5*tick + 25*tick,
		},
		"a place but no blocks: until an answer ends that held enough": {
			func(o *Outlook) {
				o.Limits.Running, o.Free = 4, 3
				o.Running = []Job{{Answer: 4, Blocks: 1}, {Answer: 7, Blocks: 5}, {Answer: 1000, Blocks: 9}}
			},
			Job{Prompt: 10, Blocks: 6},
			7*5*tick + 25*tick,
		},
		"just enough": {
			func(o *Outlook) {
				o.Limits.Running, o.Free, o.Running = 4, 8, []Job{{Answer: 1000, Blocks: 9}, {Answer: 1000}}
			},
			Job{Prompt: 10, Blocks: 6},
			5*tick + 25*tick,
		},
		"alone it has all": {func(o *Outlook) { o.Free = 3 }, Job{Prompt: 100, Blocks: 9}, 100 * tick},
		"behind one that waits": {
			func(o *Outlook) {
				o.Running, o.Waiting = []Job{{Answer: 1}, {Answer: 1}}, []Job{{Prompt: 50, Answer: 1000}}
			},
			Job{Prompt: 50},
			5*tick + 100*tick,
		},
		"depth":             {deep, Job{Done: 100, Prompt: 50}, 112*tick + tick/2},
		"what is not known": {func(o *Outlook) { o.Cost = Cost{Decode: tick} }, Job{Prompt: 9}, 0},
		"only beside known": {func(o *Outlook) { o.Cost.Alone = 0 }, Job{Prompt: 20}, 40 * tick},
		"only alone known":  {func(o *Outlook) { o.Cost.Beside = 0; o.Running = []Job{{Answer: 99}} }, Job{Prompt: 10}, 20 * tick},
	} {
		o := outlook()
		c.change(&o)
		if got := o.FirstToken(c.job); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// More to read never takes less time, and any state comes to an end.
func TestForecastGrows(t *testing.T) {
	job := rapid.Custom(func(t *rapid.T) Job {
		return Job{Done: rapid.IntRange(0, 3000).Draw(t, "done"), Prompt: rapid.IntRange(0, 3000).Draw(t, "prompt"), Answer: rapid.IntRange(0, 2000).Draw(t, "answer"), Blocks: rapid.IntRange(0, 9).Draw(t, "blocks")}
	})
	rapid.Check(t, func(t *rapid.T) {
		o := outlook()
		o.Limits.Running, o.Free = rapid.IntRange(1, 4).Draw(t, "places"), rapid.IntRange(0, 20).Draw(t, "free")
		o.Running = rapid.SliceOfN(job, 0, o.Limits.Running).Draw(t, "running")
		o.Waiting = rapid.SliceOfN(job, 0, 5).Draw(t, "waiting")
		n := rapid.IntRange(1, 2000).Draw(t, "prompt")
		short, long := o.FirstToken(Job{Prompt: n}), o.FirstToken(Job{Prompt: n + rapid.IntRange(1, 500).Draw(t, "more")})
		if short <= 0 || long < short {
			t.Fatalf("%d tokens take %v, more of them %v", n, short, long)
		}
	})
}
