package schedule

import (
	"cmp"
	"slices"
	"time"
)

// Cost is what steps take, as it was measured. A row of a prompt counts by its
// weight: more the more positions lie before it.
type Cost struct {
	// Decode is the time of a step that only decodes; no step is shorter, since all
	// weights are read.
	Decode time.Duration
	// Alone is the time of a row of weight 1 in a step of prompts alone, Beside what it
	// adds to a step in which others decode, and Hurried the same in a step that is
	// hurried.
	Alone, Beside, Hurried time.Duration
}

// Known says whether prompts were measured at all.
func (c Cost) Known() bool { return c.Alone > 0 || c.Beside > 0 }

// step is how long a step takes whose rows of prompts weigh so much.
func (c Cost) step(weight float64, decoding, hurried bool) time.Duration {
	alone, beside := c.Alone, c.Beside
	if hurried {
		// Many rows cost about what they cost alone.
		beside = cmp.Or(c.Hurried, alone, beside)
	}
	if alone == 0 {
		alone = beside
	}
	if beside == 0 {
		beside = alone
	}
	if decoding {
		return c.Decode + time.Duration(weight*float64(beside))
	}
	return max(c.Decode, time.Duration(weight*float64(alone)))
}

// Job is a sequence as a forecast sees it.
type Job struct {
	Done   int // tokens in the cache
	Prompt int // tokens of the prompt that are not
	Answer int // tokens of the answer that are expected to come
	// By is when its first token was asked for; zero when at no time.
	By time.Time
	// Blocks is how many free cache blocks it takes when it starts, or gives back at its
	// end; 0 where blocks do not matter.
	Blocks int
}

// Outlook is the state that a forecast starts from.
type Outlook struct {
	Cost    Cost
	Limits  Limits
	Running []Job // in the order of admission, before the step underway
	Now     time.Time
	// Underway is how long the step underway has lasted, and Hurry for how many it is
	// hurried, as Hurried has it.
	Underway time.Duration
	Hurry    int
	// Steady forbids to hurry.
	Steady  bool
	Waiting []Job // in the order in which they are to start
	Free    int   // cache blocks
	// Rows bounds the prompts of a step with the deepest at a depth, and Weight is
	// what a row at a depth weighs.
	Rows   func(depth int, decoding bool) int
	Weight func(depth int) float64
}

// maxForecast bounds the steps of a forecast. What then is left goes on at the pace
// of the last step.
const maxForecast = 4096

// FirstToken is how long it would take from now until the first token of one more
// job, behind all others: the very steps that Plan would make are added up. It is 0
// when the cost is not known. Whoever starts leaves a free block for each that runs, as
// in Admit; that answers grow beyond the blocks they started with is left out.
func (o Outlook) FirstToken(job Job) time.Duration {
	if !o.Cost.Known() {
		return 0
	}
	f := forecast{Outlook: o, running: slices.Clone(o.Running), mine: -1}
	var total, last time.Duration
	if len(o.Running) > 0 {
		// Nobody new is in the step underway.
		total = max(0, f.step(o.Hurry)-o.Underway)
		f.leave()
	}
	f.waiting = append(slices.Clone(o.Waiting), job)
	for range maxForecast {
		f.admit()
		last = f.step(f.hurried(o.Now.Add(total)))
		total += last
		if f.mine >= 0 && f.running[f.mine].Prompt == 0 {
			return total
		}
		f.leave()
	}
	return total + time.Duration(f.left())*last
}

// forecast is a state that moves on step by step.
type forecast struct {
	Outlook
	running, waiting []Job
	mine             int // index of the job asked about in running, -1 while it waits
	pending, rows    []int
}

func (f *forecast) admit() {
	for len(f.waiting) > 0 && len(f.running) < f.Limits.Running && f.fits(f.waiting[0]) {
		f.Free -= f.waiting[0].Blocks
		f.running = append(f.running, f.waiting[0])
		if f.waiting = f.waiting[1:]; len(f.waiting) == 0 {
			f.mine = len(f.running) - 1
		}
	}
}

// fits says whether there are blocks for a job to start. One has all to itself.
func (f *forecast) fits(j Job) bool {
	return j.Blocks == 0 || len(f.running) == 0 || f.Free-j.Blocks >= len(f.running)
}

func (f *forecast) hurried(at time.Time) int {
	if f.Steady {
		return 0
	}
	return f.Hurried(f.running, at)
}

// step moves every running job on by one step, which is hurried for the first so
// many, and says how long it takes.
func (f *forecast) step(hurried int) time.Duration {
	f.pending = f.pending[:0]
	deepest, answers := 0, 0
	for i, j := range f.running {
		switch {
		case j.Prompt == 0:
			answers++
			f.pending = append(f.pending, 1)
		case hurried > 0 && i >= hurried:
			f.pending = append(f.pending, 0)
		default:
			deepest = max(deepest, j.Done)
			// A last row of a prompt asks for a token as one that decodes does.
			f.pending = append(f.pending, max(2, j.Prompt))
		}
	}
	l, decoding := f.Limits, answers > 0
	if hurried > 0 {
		l = l.Hurried(answers)
	}
	throttled := decoding && hurried == 0
	if rows := f.Rows(deepest, throttled); throttled {
		l.PromptTokens = rows
	} else {
		l.StepTokens = max(l.Running, min(l.StepTokens, rows))
	}
	f.rows = Plan(f.rows[:0], f.pending, l)
	weight := 0.0
	for i, n := range f.rows {
		j := &f.running[i]
		if j.Prompt == 0 {
			j.Answer--
			continue
		}
		n = min(n, j.Prompt)
		weight += float64(n) * f.Weight(j.Done+n/2)
		j.Prompt -= n
		j.Done += n
	}
	return f.Cost.step(weight, decoding, hurried > 0)
}

// leave takes out the jobs whose answers are done. The one asked about never is: its
// forecast ends before.
func (f *forecast) leave() {
	kept := f.running[:0]
	mine := -1
	for i, j := range f.running {
		if j.Prompt == 0 && j.Answer <= 0 && i != f.mine {
			f.Free += j.Blocks
			continue
		}
		if i == f.mine {
			mine = len(kept)
		}
		kept = append(kept, j)
	}
	f.running, f.mine = kept, mine
}

// left is about how many more steps it takes until the job asked about has read its
// prompt.
func (f *forecast) left() int {
	rows := max(1, slices.Max(append(f.rows, 1)))
	tokens, answers := 0, 0
	for _, j := range append(slices.Clone(f.running), f.waiting...) {
		tokens += j.Prompt
		answers += max(0, j.Answer)
	}
	if f.mine >= 0 {
		answers = 0
	}
	return tokens/rows + answers/max(1, f.Limits.Running)
}
