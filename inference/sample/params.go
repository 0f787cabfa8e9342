package sample

import (
	"errors"
	"fmt"
)

// Params say how to choose tokens. The zero value is greedy decoding.
type Params struct {
	// Temperature divides the logits; below 1e-5 decoding is greedy.
	Temperature float32
	// TopK keeps the k most probable tokens; 0 keeps all.
	TopK int
	// TopP keeps the smallest set of most probable tokens whose probability
	// reaches p (arXiv 1904.09751); 0 and 1 keep all.
	TopP float32
	// MinP keeps tokens at least p times as probable as the best one
	// (arXiv 2407.01082); 0 keeps all.
	MinP float32
	// RepetitionPenalty divides the positive logits of accepted tokens and
	// multiplies the negative ones (CTRL, arXiv 1909.05858); 0 and 1 are none.
	RepetitionPenalty float32
	// Seed starts the request's generator.
	Seed uint64
	// Grammar, when not nil, rules out tokens before anything else.
	Grammar Grammar
}

// Grammar restricts which tokens may come next.
type Grammar interface {
	// Mask sets the logits of tokens that may not come next to -Inf.
	Mask(logits []float32)
	// Accept moves on by the token that was chosen.
	Accept(id int32)
}

// Upper bounds of parameters that have no natural one.
const (
	MaxTemperature       = 100
	MaxRepetitionPenalty = 10
)

// greedyBelow is the temperature under which dividing says nothing that the
// largest logit does not.
const greedyBelow = 1e-5

// ErrParams is wrapped by errors about parameters out of bounds.
var ErrParams = errors.New("sampling parameter out of bounds")

// Validate reports the first parameter that is out of bounds, and the bounds.
func (p Params) Validate() error {
	ranges := []struct {
		name string
		v    float32
		max  float32
	}{
		{"temperature", p.Temperature, MaxTemperature},
		{"top_p", p.TopP, 1},
		{"min_p", p.MinP, 1},
		{"repetition_penalty", p.RepetitionPenalty, MaxRepetitionPenalty},
	}
	for _, r := range ranges {
		if !(r.v >= 0 && r.v <= r.max) { // false for NaN too
			return fmt.Errorf("%w: %s is %v, must be between 0 and %v", ErrParams, r.name, r.v, r.max)
		}
	}
	if p.TopK < 0 {
		return fmt.Errorf("%w: top_k is %d, must be 0 or more", ErrParams, p.TopK)
	}
	return nil
}
