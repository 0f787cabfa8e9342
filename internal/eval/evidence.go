package eval

import (
	"context"
	"math"
	"slices"

	"ragd/rerank"
)

// Evidence says how well the bounds on evidence part questions that the corpus
// answers from questions that it does not.
type Evidence struct {
	// Strangers is the set whose questions this corpus cannot answer.
	Strangers string `json:"strangers"`
	// Own and Foreign are quantiles (5, 10, 25, 50, 75, 90, 95, 99 %) of the best
	// cosine (of a chunk or a sentence) and of the best share of words: for Own,
	// of a document that answers; for Foreign, of any.
	Own     Quantiles `json:"own"`
	Foreign Quantiles `json:"foreign"`
	// Bounds lists what each bound on the evidence (rerank.Evidence) would do.
	Bounds []Bound `json:"bounds"`
}

// Quantiles of the two measures of evidence.
type Quantiles struct {
	Cosine []float64 `json:"cosine"`
	Words  []float64 `json:"words"`
}

// Bound is one choice of the bound and the share of questions it decides well.
type Bound struct {
	MinScore float64 `json:"min_score"`
	// Answered is the share of own questions whose document passes.
	Answered float64 `json:"answered"`
	// Refused is the share of foreign questions for which nothing passes.
	Refused float64 `json:"refused"`
}

// signal is the evidence that one question finds.
type signal struct{ cosine, words, evidence float64 }

// Calibrate asks the questions of the set and of a foreign one and weighs bounds.
func Calibrate(ctx context.Context, set, foreign *Set, p Parts, cfg Config) (*Evidence, error) {
	cfg.Pipelines = []string{Default}
	r, err := newRunner(ctx, set, p, cfg)
	if err != nil {
		return nil, err
	}
	own, err := r.signals(ctx, true)
	if err != nil {
		return nil, err
	}
	r.set = &Set{Name: foreign.Name, Queries: foreign.Queries}
	if err := r.embed(ctx, foreign.Queries); err != nil {
		return nil, err
	}
	strange, err := r.signals(ctx, false)
	if err != nil {
		return nil, err
	}
	return &Evidence{
		Strangers: foreign.Name, Own: quantiles(own), Foreign: quantiles(strange), Bounds: weigh(own, strange),
	}, nil
}

// signals returns what each question finds: in its own documents, or in any.
func (r *runner) signals(ctx context.Context, own bool) ([]signal, error) {
	var spent stopwatch
	out := make([]signal, len(r.set.Queries))
	for i, asked := range r.set.Queries {
		q := r.query(i, &spent)
		q.Limit = r.Reranked
		got, err := r.ask(ctx, Default, q, &spent)
		if err != nil {
			return nil, err
		}
		for _, h := range got.hits {
			if own && asked.Gain[r.paths[h.Chunk.ID]] <= 0 {
				continue
			}
			out[i].cosine = max(out[i].cosine, float64(h.Scores.Dense), float64(h.Scores.Sentence))
			out[i].words = max(out[i].words, float64(h.Scores.LexicalShare))
			out[i].evidence = max(out[i].evidence, float64(rerank.Evidence(h.Scores)))
		}
		r.cfg.Progress("evidence", i+1, len(r.set.Queries))
	}
	return out, nil
}

func quantiles(list []signal) Quantiles {
	at := func(of func(signal) float64) []float64 {
		values := make([]float64, len(list))
		for i, s := range list {
			values[i] = of(s)
		}
		slices.Sort(values)
		var out []float64
		for _, q := range []float64{.05, .1, .25, .5, .75, .9, .95, .99} {
			out = append(out, math.Round(1000*values[int(q*float64(len(values)-1))])/1000)
		}
		return out
	}
	return Quantiles{at(func(s signal) float64 { return s.cosine }), at(func(s signal) float64 { return s.words })}
}

func weigh(own, foreign []signal) []Bound {
	var out []Bound
	for score := 80; score <= 100; score++ {
		b := Bound{MinScore: float64(score) / 100}
		b.Answered = share(own, b)
		b.Refused = 1 - share(foreign, b)
		out = append(out, b)
	}
	return out
}

// share of the questions that find evidence.
func share(list []signal, b Bound) float64 {
	n := 0
	for _, s := range list {
		if s.evidence >= b.MinScore {
			n++
		}
	}
	return float64(n) / float64(max(len(list), 1))
}
