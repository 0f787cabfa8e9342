package engine

import "math"

// negligible is how far below the chosen token another no longer counts: even
// 250,000 of them move a log probability by less than 6e-4. Leaving them out
// saves most of the exponentials.
const negligible = 20

// logProb is the log softmax of logits at id, not less than about -80. The
// sum is taken relative to that logit rather than to the largest, which saves a
// pass: a token that was drawn is never far from the largest.
func logProb(logits []float32, id int32) float64 {
	chosen := logits[id]
	var sum float64
	for _, l := range logits {
		if d := l - chosen; d > -negligible {
			sum += float64(exp(d))
		}
	}
	return -math.Log(sum)
}

// exp is e^x within 1e-5 of it, for x from -80 to 80; above it is e^80. It runs
// for every token over much of the vocabulary, where math.Exp would take several
// hundredths of the time of a small model's step.
//
// e^x = 2^k · 2^f with f in [-½, ½]; 2^f is its Taylor series to the fifth power.
func exp(x float32) float32 {
	const ln2, bias = math.Ln2, 127
	if x > 80 {
		x = 80
	}
	y := x * math.Log2E
	k := int32(y + bias + 0.5)
	f := y - float32(k-bias)
	p := 1 + f*(ln2+f*(ln2*ln2/2+f*(ln2*ln2*ln2/6+f*(ln2*ln2*ln2*ln2/24+f*(ln2*ln2*ln2*ln2*ln2/120)))))
	return p * math.Float32frombits(uint32(k)<<23)
}
