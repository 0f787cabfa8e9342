package eval

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Asker answers questions over a collection as a user would get them answered.
type Asker interface {
	Ask(ctx context.Context, q Question) (Reply, error)
}

// Question is one that is put to an Asker.
type Question struct {
	Text       string
	Collection string
	History    []Turn
	// Mode is the answer mode; empty for the asker's default.
	Mode string
}

// Reply is an answer.
type Reply struct {
	// Text may hold citation markers.
	Text    string
	Kind    string
	Refused bool
	// Cited names the document of each citation.
	Cited []string
	// InputTokens and OutputTokens are what the engine was given and what it wrote.
	InputTokens, OutputTokens int
}

// Answers are the metrics of answers. A nil one was not measured: the set has no
// such questions.
type Answers struct {
	Questions int `json:"questions"`
	// EM, F1 and Contains are means over the answerable questions (Match); a refusal
	// scores 0.
	EM       *float64 `json:"em"`
	F1       *float64 `json:"f1"`
	Contains *float64 `json:"contains"`
	// CitationPrecision is the share of the cited documents that are judged to answer
	// the question, a mean over the answers that cite; CitationRecall the share of
	// the judged documents that are cited, a mean over the answerable questions.
	CitationPrecision *float64 `json:"citation_precision"`
	CitationRecall    *float64 `json:"citation_recall"`
	// RefusalAccuracy is the share of the unanswerable questions that were refused,
	// Answered that of the answerable ones that were not.
	RefusalAccuracy *float64 `json:"refusal_accuracy"`
	Answered        *float64 `json:"answered"`
	// Intervals are the 95 % bootstrap intervals, by metric.
	Intervals map[string][2]float64 `json:"intervals"`
	// InputTokens and OutputTokens are means over all questions.
	InputTokens  float64       `json:"input_tokens"`
	OutputTokens float64       `json:"output_tokens"`
	PerQuery     []AnswerScore `json:"per_query"`
}

// AnswerScore is one answer with what it is worth.
type AnswerScore struct {
	ID           string `json:"id"`
	Unanswerable bool   `json:"unanswerable,omitempty"`
	Refused      bool   `json:"refused"`
	Kind         string `json:"kind"`
	Answer       string `json:"answer"`
	Match
	CitationPrecision *float64 `json:"citation_precision"`
	CitationRecall    float64  `json:"citation_recall"`
	InputTokens       int      `json:"input_tokens"`
	OutputTokens      int      `json:"output_tokens"`
	MS                float64  `json:"ms"`
}

// Answer asks n questions of the set, evenly spread over it. Where some are
// unanswerable, every second one is.
func Answer(ctx context.Context, set *Set, p Parts, cfg Config, n int) (*Answers, error) {
	cfg.Pipelines = []string{Default}
	if cfg.Progress == nil {
		cfg.Progress = func(string, int, int) {}
	}
	r := &runner{Parts: p, cfg: cfg, set: set}
	if err := r.ingest(ctx); err != nil {
		return nil, fmt.Errorf("ingest %s: %w", set.Name, err)
	}
	out := &Answers{}
	list := sample(set.Queries, n)
	for i, q := range list {
		s, err := r.answer(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("question %s: %w", q.ID, err)
		}
		out.PerQuery = append(out.PerQuery, s)
		cfg.Progress("answers", i+1, len(list))
	}
	out.sum()
	return out, nil
}

func (r *runner) answer(ctx context.Context, q Query) (AnswerScore, error) {
	start := time.Now()
	reply, err := r.Asker.Ask(ctx, Question{q.Text, r.collection, q.History, r.cfg.AnswerMode})
	if err != nil {
		return AnswerScore{}, err
	}
	s := score(q, reply)
	s.MS = milliseconds(time.Since(start))
	return s, nil
}

// sample takes n questions at equal distances, half of them unanswerable ones
// where there are both.
func sample(list []Query, n int) []Query {
	var can, cannot []Query
	for _, q := range list {
		if q.Unanswerable {
			cannot = append(cannot, q)
		} else {
			can = append(can, q)
		}
	}
	half := min(n/2, len(cannot))
	if len(can) == 0 {
		half = n
	}
	return append(spread(can, n-half), spread(cannot, half)...)
}

func spread(list []Query, n int) []Query {
	n = min(n, len(list))
	out := make([]Query, 0, n)
	for i := range n {
		out = append(out, list[i*len(list)/n])
	}
	return out
}

// markers are the citations inside an answer's text, which are no words of it.
var markers = regexp.MustCompile(`\s*\[\d{1,3}(?:\s*,\s*\d{1,3})*\]`)

func score(q Query, reply Reply) AnswerScore {
	s := AnswerScore{
		ID: q.ID, Unanswerable: q.Unanswerable, Refused: reply.Refused, Kind: reply.Kind, Answer: reply.Text,
		InputTokens: reply.InputTokens, OutputTokens: reply.OutputTokens,
	}
	if q.Unanswerable || reply.Refused {
		return s
	}
	s.Match = match(q.Text, strings.TrimSpace(markers.ReplaceAllString(reply.Text, "")), q.Answers)
	cited := slices.Compact(slices.Sorted(slices.Values(reply.Cited)))
	right := 0.0
	for _, id := range cited {
		if q.Gain[id] > 0 {
			right++
		}
	}
	if len(cited) > 0 {
		p := right / float64(len(cited))
		s.CitationPrecision = &p
	}
	s.CitationRecall = right / float64(max(len(q.Gain), 1))
	return s
}

// sum fills the means from the scores.
func (a *Answers) sum() {
	a.Questions, a.Intervals = len(a.PerQuery), map[string][2]float64{}
	for _, m := range answerMetrics {
		var values []float64
		for _, s := range a.PerQuery {
			if v, counts := m.of(s); counts {
				values = append(values, v)
			}
		}
		if len(values) > 0 {
			v := average(values)
			*m.in(a) = &v
			a.Intervals[m.name] = interval(values)
		}
	}
	a.InputTokens = average(column(a.PerQuery, func(s AnswerScore) float64 { return float64(s.InputTokens) }))
	a.OutputTokens = average(column(a.PerQuery, func(s AnswerScore) float64 { return float64(s.OutputTokens) }))
}

// answerMetrics says which answers a metric counts and what it takes of each.
var answerMetrics = []struct {
	name string
	in   func(*Answers) **float64
	of   func(AnswerScore) (value float64, counts bool)
}{
	{"em", func(a *Answers) **float64 { return &a.EM }, func(s AnswerScore) (float64, bool) { return s.EM, !s.Unanswerable }},
	{"f1", func(a *Answers) **float64 { return &a.F1 }, func(s AnswerScore) (float64, bool) { return s.F1, !s.Unanswerable }},
	{"contains", func(a *Answers) **float64 { return &a.Contains }, func(s AnswerScore) (float64, bool) { return s.Contains, !s.Unanswerable }},
	{"citation_precision", func(a *Answers) **float64 { return &a.CitationPrecision }, func(s AnswerScore) (float64, bool) {
		if s.CitationPrecision == nil {
			return 0, false
		}
		return *s.CitationPrecision, true
	}},
	{"citation_recall", func(a *Answers) **float64 { return &a.CitationRecall }, func(s AnswerScore) (float64, bool) { return s.CitationRecall, !s.Unanswerable }},
	{"refusal_accuracy", func(a *Answers) **float64 { return &a.RefusalAccuracy }, func(s AnswerScore) (float64, bool) { return truth(s.Refused), s.Unanswerable }},
	{"answered", func(a *Answers) **float64 { return &a.Answered }, func(s AnswerScore) (float64, bool) { return truth(!s.Refused), !s.Unanswerable }},
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// answers adds the differences of two runs' answers.
func (c *Comparison) answers(a, b *Answers) {
	if a == nil || b == nil {
		return
	}
	for _, m := range answerMetrics {
		counted := func(list []AnswerScore) []AnswerScore {
			return slices.DeleteFunc(slices.Clone(list), func(s AnswerScore) bool { _, counts := m.of(s); return !counts })
		}
		of := func(s AnswerScore) float64 { v, _ := m.of(s); return v }
		p := pairs(counted(a.PerQuery), counted(b.PerQuery), func(s AnswerScore) string { return s.ID }, of)
		c.add("answers", m.name, p, m.name == "f1" || m.name == "refusal_accuracy")
	}
}
