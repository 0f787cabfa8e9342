package eval

import (
	"math/rand/v2"
	"slices"
)

// resamples of the bootstrap; the seed is fixed, so that a run can be repeated.
const resamples = 1000

// interval is the 95 % interval of the mean of a metric, by the percentile
// bootstrap over questions (Efron and Tibshirani, 1993).
func interval(list []Metrics, of func(Metrics) float64) [2]float64 {
	if len(list) == 0 {
		return [2]float64{}
	}
	values := make([]float64, len(list))
	for i, m := range list {
		values[i] = of(m)
	}
	rng := rand.New(rand.NewPCG(1, 2))
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
