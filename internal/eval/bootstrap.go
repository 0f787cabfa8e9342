package eval

import (
	"math"
	"math/rand/v2"
	"slices"
)

const (
	// resamples of the bootstrap and permutations of the randomisation test; the
	// seed is fixed, so that a run can be repeated.
	resamples    = 1000
	permutations = 10_000
)

func generator() *rand.Rand { return rand.New(rand.NewPCG(1, 2)) }

// interval is the 95 % interval of the mean, by the percentile bootstrap over
// questions (Efron and Tibshirani, 1993).
func interval(values []float64) [2]float64 {
	if len(values) == 0 {
		return [2]float64{}
	}
	rng := generator()
	means := make([]float64, resamples)
	for i := range means {
		sum := 0.0
		for range values {
			sum += values[rng.IntN(len(values))]
		}
		means[i] = sum / float64(len(values))
	}
	slices.Sort(means)
	return [2]float64{means[resamples*25/1000], means[resamples*975/1000]}
}

// pValue is that of the paired randomisation test, two-sided: how often the mean
// difference is as large when each question's sign is drawn at random (Smucker,
// Allan and Carterette, 2007), the observed one counted in.
func pValue(differences []float64) float64 {
	observed := 0.0
	var moved []float64
	for _, d := range differences {
		observed += d
		if d != 0 {
			moved = append(moved, d)
		}
	}
	// The sum of the same numbers in another order differs in its last digits.
	least := math.Abs(observed) - 1e-9
	rng := generator()
	reached := 1
	for range permutations {
		sum := 0.0
		var bits uint64
		for i, d := range moved {
			if i%64 == 0 {
				bits = rng.Uint64()
			}
			if bits&1 == 0 {
				d = -d
			}
			bits >>= 1
			sum += d
		}
		if math.Abs(sum) >= least {
			reached++
		}
	}
	return float64(reached) / (permutations + 1)
}

// column takes one number of each.
func column[T any](list []T, of func(T) float64) []float64 {
	out := make([]float64, len(list))
	for i, v := range list {
		out[i] = of(v)
	}
	return out
}

func average(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(max(len(values), 1))
}
