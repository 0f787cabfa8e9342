package telemetry

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"ragd/telemetry/cost"
)

// spent sums up what requests cost, in whole billionths: a counter that added floats
// would drift.
type spent struct {
	mu   sync.Mutex
	sums map[string]*cost.Cost // by currency, of which a process has one
}

func (s *spent) add(c *cost.Cost) {
	if c == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := s.sums[c.Currency]
	if sum == nil {
		sum = &cost.Cost{Currency: c.Currency}
		if s.sums == nil {
			s.sums = map[string]*cost.Cost{}
		}
		s.sums[c.Currency] = sum
	}
	sum.Input += c.Input
	sum.CachedInput += c.CachedInput
	sum.Output += c.Output
}

// watch registers the counter. Without prices it has no samples.
func (s *spent) watch(m metric.Meter) error {
	counter, err := m.Float64ObservableCounter(metricCost, metric.WithDescription("what requests cost, in units of the currency, by part"))
	_, err2 := m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s.mu.Lock()
		defer s.mu.Unlock()
		for currency, sum := range s.sums {
			for part, v := range map[string]cost.Amount{"input": sum.Input, "cached_input": sum.CachedInput, "output": sum.Output} {
				o.ObserveFloat64(counter, v.Float(), metric.WithAttributes(attribute.String("part", part), attribute.String("currency", currency)))
			}
		}
		return nil
	}, counter)
	return errors.Join(err, err2)
}
