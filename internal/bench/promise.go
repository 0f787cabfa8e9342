package bench

import (
	"math"
	"slices"
)

// Promise is a time to first token that was asked for, with what was predicted and
// what came, all in milliseconds from the receipt of the question to the first token
// that the model drew.
type Promise struct {
	Asked     float64
	Predicted float64 // 0 when no rate was known
	Observed  float64
	// Fixed: the question could not be read in the time even without evidence.
	Fixed bool
	// Dropped are the tokens of the chunks left out for the time, best first.
	Dropped []int
	// Fresh are the tokens of the prompt that were not cached, Prefill the milliseconds
	// that they took.
	Fresh   int
	Prefill float64
}

// Promises says how the promises were kept.
type Promises struct {
	Asked float64 `json:"asked_ms"`
	Count int     `json:"count"`
	// Within is the share whose first token came in time. Impossible counts those that
	// could not, even without evidence; they are not in the share.
	Within     float64 `json:"within"`
	Impossible int     `json:"impossible"`
	// ErrorP50 is the median of |predicted − observed| ÷ observed, ErrorP95 its 95th
	// percentile, Bias the median of the signed one: above 0 predicts too long.
	ErrorP50 float64 `json:"error_p50"`
	ErrorP95 float64 `json:"error_p95"`
	Bias     float64 `json:"bias"`
	// Meagre counts answers that left out more than one chunk which would have fitted
	// in the time, as it turned out; Cut counts those that left out any for the time.
	Meagre int `json:"meagre"`
	Cut    int `json:"cut"`
}

// kept judges the promises; nil when there were none.
func kept(answered []Asked) *Promises {
	var p Promises
	var size, signed []float64
	within, perToken := 0, marginal(answered)
	for _, a := range answered {
		if a.Promise == nil || a.Promise.Observed <= 0 {
			continue
		}
		p.Count++
		p.Asked = a.Promise.Asked
		if a.Promise.Predicted > 0 {
			e := (a.Promise.Predicted - a.Promise.Observed) / a.Promise.Observed
			size, signed = append(size, math.Abs(e)), append(signed, e)
		}
		switch {
		case a.Promise.Observed <= a.Promise.Asked:
			within++
		case a.Promise.Fixed:
			p.Impossible++
		}
		if len(a.Promise.Dropped) > 0 {
			p.Cut++
		}
		if a.Promise.meagre(perToken) {
			p.Meagre++
		}
	}
	if p.Count == 0 {
		return nil
	}
	if possible := p.Count - p.Impossible; possible > 0 {
		p.Within = float64(within) / float64(possible)
	}
	if len(size) > 0 {
		slices.Sort(size)
		slices.Sort(signed)
		p.ErrorP50, p.ErrorP95, p.Bias = Percentile(size, 0.5), Percentile(size, 0.95), Percentile(signed, 0.5)
	}
	return &p
}

// marginal is what a token more takes, in milliseconds: the slope of prefill over fresh
// tokens in all of the run. It is more than a token of a prompt takes on average,
// since later tokens attend to all those before.
func marginal(answered []Asked) float64 {
	var points []Point
	for _, a := range answered {
		if p := a.Promise; p != nil && p.Observed > 0 && p.Fresh > 0 {
			points = append(points, Point{float64(p.Fresh), p.Prefill})
		}
	}
	slope, _, _ := leastSquares(points)
	return slope
}

// meagre says whether two of the chunks left out would have fitted into the time
// that was left over, at what a token of this prompt took or a token more takes in the
// run, whichever is more.
func (p *Promise) meagre(marginal float64) bool {
	if len(p.Dropped) < 2 || p.Fresh <= 0 {
		return false
	}
	small := slices.Sorted(slices.Values(p.Dropped))
	perToken := max(marginal, p.Prefill/float64(p.Fresh))
	return float64(small[0]+small[1])*perToken <= p.Asked-p.Observed
}
