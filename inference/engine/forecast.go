package engine

import (
	"slices"
	"time"

	"ragd/inference/kvcache"
	"ragd/inference/model"
	"ragd/inference/schedule"
)

// outlook is what a forecast knows: what steps cost, how long answers are, and how
// the running sequences stood before the step underway. Engine.mu guards it.
type outlook struct {
	alone, beside, hurried float64 // seconds of a prompt row of weight 1
	length                 float64 // tokens of an answer
	accepted               float64 // share of them that was drafted
	began                  time.Time
	hurry                  int // of the step underway: loop.hurried
	running                []schedule.Job
}

// leastWeight is the weight of prompt rows under which a step says nothing about
// their cost: the reading of the weights hides it.
const leastWeight = 16

// watched runs the step and lets the outlook learn from it.
func (e *Engine) watched() ([]row, error) {
	began := time.Now()
	e.mu.Lock()
	e.outlook.began, e.outlook.hurry = began, e.loop.hurried
	e.mu.Unlock()
	rows, err := e.decode()
	if err == nil {
		e.learn(time.Since(began))
	}
	return rows, err
}

// learn takes the step that was just run, and its time, into account.
func (e *Engine) learn(took time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	weight, decoding := 0.0, false
	for _, p := range e.loop.parts {
		if p.rows == 1 && p.logits > 0 {
			decoding = true
			continue
		}
		weight += float64(p.rows) * e.loop.beside.Weight(p.done+p.rows/2)
	}
	o := &e.outlook
	rest := took.Seconds() - e.pace.decode
	switch {
	case decoding && weight > 0 && e.pace.decode > 0 && rest > 0 && e.loop.hurried > 0:
		o.hurried = average(o.hurried, rest/weight)
	case decoding && weight > 0 && e.pace.decode > 0 && rest > 0:
		o.beside = average(o.beside, rest/weight)
	case !decoding && weight >= leastWeight:
		o.alone = average(o.alone, took.Seconds()/weight)
	}
}

// ended takes the length of an answer into account.
func (o *outlook) ended(tokens, accepted int) {
	if tokens > 0 {
		o.length = average(o.length, float64(tokens))
		o.accepted = average(o.accepted, float64(accepted)/float64(tokens))
	}
}

// expected is how many more tokens an answer is expected to have, given its tokens so
// far and those that may come. One that is past the usual length goes on for a while.
func (o *outlook) expected(written, left int) float64 {
	more := float64(left)
	if o.length > 0 {
		more = min(more, max(o.length-float64(written), o.length/4))
	}
	return more
}

// ahead is for how many tokens of an answer there are blocks when its sequence starts:
// as many as are expected, within bounds.
func (o *outlook) ahead(written, left int) int {
	ahead := float64(mostAhead)
	if o.length > 0 {
		ahead = min(ahead, o.expected(written, left))
	}
	return max(int(ahead), model.BlockTokens)
}

// steps is how many more steps it is expected to take.
func (o *outlook) steps(written, left int) int {
	return int(o.expected(written, left) * (1 - min(o.accepted, 0.9)))
}

// jobs appends the running sequences as a forecast sees them. Only the loop may call
// it, with the lock.
func (e *Engine) jobs(to []schedule.Job) []schedule.Job {
	now := time.Now()
	for _, s := range e.loop.running {
		if !s.ended {
			to = append(to, schedule.Job{
				Done: s.done, Prompt: s.unread(), Answer: e.outlook.steps(s.drawn(), s.left()), By: s.due(now),
				Blocks: e.loop.pool.Own(s.table),
			})
		}
	}
	return to
}

// FirstToken predicts how long it takes until the first token of a prompt that is
// submitted now and finds its first warm tokens in the cache: until the prompts and
// answers ahead leave it room, and until it is read in pieces beside what runs, or
// faster if it is to be there by a time (Request.FirstTokenBy; as fast as can be with
// one that is over). It is 0 while no prompt was measured.
func (e *Engine) FirstToken(prompt, warm int, by time.Time) time.Duration {
	e.mu.Lock()
	o := e.view()
	o.Running = slices.Clone(o.Running)
	if !e.outlook.began.IsZero() {
		o.Underway = o.Now.Sub(e.outlook.began)
	}
	for _, s := range e.waiting {
		j := schedule.Job{Prompt: len(s.tokens), Answer: e.outlook.steps(s.drawn(), s.left()), By: s.due(o.Now), Blocks: kvcache.BlocksOf(e.room(s))}
		if s.started > 0 {
			// Most of what it had computed is there still.
			j.Done = e.Warm(s.tenant, s.tokens)
			j.Prompt -= j.Done
		}
		o.Waiting = append(o.Waiting, j)
	}
	// What is warm is taken for blocks that others hold.
	blocks := kvcache.BlocksOf(min(prompt+e.outlook.ahead(0, mostAhead), e.window) - warm)
	e.mu.Unlock()
	return o.FirstToken(schedule.Job{Done: warm, Prompt: max(1, prompt-warm), Answer: 1, By: by, Blocks: blocks})
}

// view is the state of the running sequences and what steps cost. The loop may call
// it, others only with the lock.
func (e *Engine) view() schedule.Outlook {
	o := &e.outlook
	return schedule.Outlook{
		Cost: schedule.Cost{
			Decode: seconds(e.pace.decode), Alone: seconds(o.alone), Beside: seconds(o.beside), Hurried: seconds(o.hurried),
		},
		Limits: e.limits, Running: o.running, Now: time.Now(), Hurry: o.hurry, Steady: e.gap > 0,
		Free: e.stats.BlocksFree, Rows: e.promptRows(), Weight: e.loop.beside.Weight,
	}
}

// hurries decides for how many of the running sequences the step that is put together
// now is hurried. A bound on gaps that somebody set is kept whatever was promised.
func (e *Engine) hurries() int {
	if e.gap > 0 || !e.loop.promised() {
		return 0
	}
	o := e.view()
	return o.Hurried(o.Running, o.Now)
}

// promised says whether a prompt that is being read has a time for its first token.
func (l *loop) promised() bool {
	return slices.ContainsFunc(l.running, func(s *sequence) bool { return !s.by.IsZero() && s.pending() > 1 })
}

// promptRows is how many rows of prompts a step takes with the deepest at a depth, by
// the throttles as they are. The caller holds the lock.
func (e *Engine) promptRows() func(depth int, decoding bool) int {
	beside, alone := e.loop.beside, e.loop.alone
	return func(depth int, decoding bool) int {
		if decoding {
			return beside.Rows(depth)
		}
		return alone.Rows(depth)
	}
}

// Warm is how many of the first tokens of a prompt are in the cache now, for a
// tenant.
func (e *Engine) Warm(tenant string, tokens []int32) int { return e.loop.pool.Warm(tokens, tenant) }
