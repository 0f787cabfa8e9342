package engine

import (
	"math"
	"slices"
)

// confidence gathers the log probabilities of drawn tokens.
type confidence struct {
	sum, min float64
	n        int
}

func (c *confidence) add(logProb float64) {
	c.sum += logProb
	c.min = min(c.min, logProb)
	c.n++
}

func (c *confidence) value() Confidence {
	if c.n == 0 {
		return Confidence{}
	}
	return Confidence{Mean: c.sum / float64(c.n), Min: c.min}
}

// negligible is the distance from the largest logit below which a token adds
// less than 4e-11 of the largest to the sum: leaving those out saves most of the
// exponentials, and a vocabulary of 250,000 such tokens moves a log probability
// by less than 1e-5.
const negligible = 24

// logProb is the log softmax of logits at id.
func logProb(logits []float32, id int32) float64 {
	top := slices.Max(logits)
	var sum float64
	for _, l := range logits {
		if d := l - top; d > -negligible {
			sum += math.Exp(float64(d))
		}
	}
	return float64(logits[id]-top) - math.Log(sum)
}
