package telemetry

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/metric"
)

// EngineStats is a snapshot that the gauges read.
type EngineStats struct {
	Queued, Running, BlocksUsed, BlocksFree int
	PrefixHitTokens                         int64
	// Preemptions is how often an answer had to pause for others, RecomputedTokens what
	// was run again for that.
	Preemptions, RecomputedTokens int64
	// PrefillRate is prompt tokens a second, DecodeStep the time of a step that
	// only decodes; 0 while not measured.
	PrefillRate float64
	DecodeStep  time.Duration
	// Weights is the size of the model's weights in bytes.
	Weights int64
}

// bandwidth is the memory traffic of decoding in bytes a second: a step reads
// every weight once. 0 while not measured.
func (s EngineStats) bandwidth() float64 {
	if s.DecodeStep <= 0 {
		return 0
	}
	return float64(s.Weights) / s.DecodeStep.Seconds()
}

// WatchEngine registers gauges that call read at each collection.
func (t *Telemetry) WatchEngine(read func() EngineStats) error {
	m := t.meter
	var errs []error
	gauge := func(name, unit, what string) metric.Int64ObservableGauge {
		g, err := m.Int64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
		errs = append(errs, err)
		return g
	}
	rate := func(name, unit, what string) metric.Float64ObservableGauge {
		g, err := m.Float64ObservableGauge(name, metric.WithUnit(unit), metric.WithDescription(what))
		errs = append(errs, err)
		return g
	}
	queue, running := gauge(metricQueueDepth, "{request}", "requests waiting"), gauge(metricRunning, "{request}", "requests being computed")
	used, free := gauge(metricBlocksUsed, "{block}", "KV cache blocks in use"), gauge(metricBlocksFree, "{block}", "KV cache blocks free")
	prefill := rate(metricPrefillRate, "{token}/s", "measured prefill rate")
	step := rate(metricDecodeStep, "s", "measured time of a step that only decodes")
	bandwidth := rate(metricBandwidth, "By/s", "weights read a second while decoding")
	counter := func(name, unit, what string) metric.Int64ObservableCounter {
		c, err := m.Int64ObservableCounter(name, metric.WithUnit(unit), metric.WithDescription(what))
		errs = append(errs, err)
		return c
	}
	hits := counter(metricPrefixHits, "{token}", "tokens reused from the prefix cache")
	preemptions := counter(metricPreemptions, "{preemption}", "times an answer paused because its cache blocks were needed")
	recomputed := counter(metricRecomputed, "{token}", "tokens run again after a pause")
	_, err := m.RegisterCallback(func(_ context.Context, o metric.Observer) error {
		s := read()
		o.ObserveInt64(queue, int64(s.Queued))
		o.ObserveInt64(running, int64(s.Running))
		o.ObserveInt64(used, int64(s.BlocksUsed))
		o.ObserveInt64(free, int64(s.BlocksFree))
		o.ObserveInt64(hits, s.PrefixHitTokens)
		o.ObserveInt64(preemptions, s.Preemptions)
		o.ObserveInt64(recomputed, s.RecomputedTokens)
		o.ObserveFloat64(prefill, s.PrefillRate)
		o.ObserveFloat64(step, s.DecodeStep.Seconds())
		o.ObserveFloat64(bandwidth, s.bandwidth())
		return nil
	}, queue, running, used, free, hits, preemptions, recomputed, prefill, step, bandwidth)
	return errors.Join(append(errs, err)...)
}
