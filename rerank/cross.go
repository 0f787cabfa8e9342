package rerank

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"ragd/retrieve"
)

// ErrQuestion is returned by a PairScorer for a question that leaves no room for a
// passage.
var ErrQuestion = errors.New("the question is too long for the reranker")

// PairScorer is a cross-encoder: it reads the question with each passage. It must
// be safe for concurrent use.
type PairScorer interface {
	Model() string
	// ScorePairs returns one score a passage, in order.
	ScorePairs(ctx context.Context, question string, passages []string) ([]PairScore, error)
}

// PairScore is a passage's score, and how many tokens at its end were not read.
type PairScore struct {
	Score float32
	Cut   int
}

// Cross scores hits by a cross-encoder within a time: hits are taken best first, a
// few at once, as long as the next ones are expected to be done in time. What a
// byte of text takes is learnt from every call. It is safe for concurrent use.
type Cross struct {
	pairs   PairScorer
	timeout time.Duration

	mu   sync.Mutex
	pace float64 // seconds a byte, smoothed; 0 before the first call
}

const (
	// groupSize is the most passages between two looks at the clock.
	groupSize = 8
	// newPace is the weight of the newest measurement in the pace.
	newPace = 0.3
)

// NewCross makes a Cross that spends at most timeout on a question.
func NewCross(pairs PairScorer, timeout time.Duration) (*Cross, error) {
	if timeout <= 0 {
		return nil, fmt.Errorf("rerank: a timeout of %v", timeout)
	}
	return &Cross{pairs: pairs, timeout: timeout}, nil
}

// Name is the model's.
func (c *Cross) Name() string { return c.pairs.Model() }

// Score rates the leading hits that time allows, at least the first: so the pace
// is learnt anew after a slow moment.
func (c *Cross) Score(ctx context.Context, q retrieve.Query, hits []retrieve.Hit) (Rating, error) {
	deadline := time.Now().Add(c.timeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	passages := make([]string, len(hits))
	for i := range hits {
		passages[i] = hits[i].Chunk.EmbedText()
	}
	var out Rating
	for done := 0; done < len(hits); done = len(out.Scores) {
		n := c.affordable(len(q.Text), passages[done:], time.Until(deadline))
		if done == 0 {
			n = max(n, 1)
		}
		if n == 0 {
			out.Short = OutOfTime
			break
		}
		scores, err := c.group(ctx, q.Text, passages[done:done+n])
		if errors.Is(err, ErrQuestion) {
			return Rating{Short: QuestionTooLong}, nil
		}
		if err != nil {
			return Rating{}, err
		}
		for i, s := range scores {
			hits[done+i].Scores.RerankCut = s.Cut
			out.Scores = append(out.Scores, s.Score)
		}
	}
	return out, nil
}

// affordable is how many of the next passages fit into left. Before the pace is
// known it is one, which measures it.
func (c *Cross) affordable(question int, passages []string, left time.Duration) int {
	c.mu.Lock()
	pace := c.pace
	c.mu.Unlock()
	if left <= 0 {
		return 0
	}
	if pace == 0 {
		return 1
	}
	n, bytes := 0, left.Seconds()/pace
	for n < min(groupSize, len(passages)) {
		if bytes -= float64(question + len(passages[n])); bytes < 0 {
			break
		}
		n++
	}
	return n
}

// group scores passages and measures the pace.
func (c *Cross) group(ctx context.Context, question string, passages []string) ([]PairScore, error) {
	start := time.Now()
	scores, err := c.pairs.ScorePairs(ctx, question, passages)
	if err != nil {
		return nil, err
	}
	if len(scores) != len(passages) {
		return nil, fmt.Errorf("%d scores for %d passages", len(scores), len(passages))
	}
	bytes := 0
	for _, p := range passages {
		bytes += len(question) + len(p)
	}
	if bytes > 0 {
		c.learn(time.Since(start).Seconds() / float64(bytes))
	}
	return scores, nil
}

func (c *Cross) learn(pace float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pace == 0 {
		c.pace = pace
		return
	}
	c.pace += newPace * (pace - c.pace)
}
