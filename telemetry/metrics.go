package telemetry

import (
	"cmp"
	"context"
	"errors"

	"go.opentelemetry.io/otel/metric"
)

// metrics are the instruments of the question road. Labels are bounded: route,
// stage, outcome, model, reason; never an id, a question or a tenant.
type metrics struct {
	request, ttft, stage                   metric.Float64Histogram
	serverDuration, serverTTFT, serverTPOT metric.Float64Histogram
	input, output, cached, retrieved, used metric.Int64Histogram
	usage                                  metric.Int64Histogram
	droppedTokens, droppedChunks           metric.Int64Counter

	spent  spent
	labels labelSets
}

var (
	// The conventions' buckets, with 20, 40 and 80 s added because prefill on a
	// CPU can take that long.
	ttftBuckets = []float64{.001, .005, .01, .02, .04, .06, .08, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80}
	tpotBuckets = []float64{.01, .025, .05, .075, .1, .15, .2, .3, .4, .5, .75, 1, 2.5}
	// The HTTP convention's, with 20 to 160 s added for streams.
	httpBuckets = []float64{.005, .01, .025, .05, .075, .1, .25, .5, .75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160}
	// Doubling from 1 ms to 33 s, then 82 s.
	stageBuckets = []float64{
		.001, .002, .004, .008, .016, .032, .064, .128, .256, .512, 1.024, 2.048, 4.096, 8.192, 16.384, 32.768, 81.92,
	}
	// The conventions': doubling from 10 ms to 82 s.
	generationBuckets = []float64{.01, .02, .04, .08, .16, .32, .64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92}
	// Doubling from a quarter of a second to about nine hours.
	ingestBuckets = []float64{.25, .5, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768}
	// The conventions': powers of four.
	usageBuckets = []float64{1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864}
	countBuckets = []float64{0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768}
)

func newMetrics(m metric.Meter) (*metrics, error) {
	var errs []error
	seconds := func(name, what string, buckets []float64) metric.Float64Histogram {
		h, err := m.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(buckets...))
		errs = append(errs, err)
		return h
	}
	count := func(name, unit, what string) metric.Int64Histogram {
		h, err := m.Int64Histogram(name, metric.WithUnit(unit), metric.WithDescription(what), metric.WithExplicitBucketBoundaries(countBuckets...))
		errs = append(errs, err)
		return h
	}
	total := func(name, unit, what string) metric.Int64Counter {
		c, err := m.Int64Counter(name, metric.WithUnit(unit), metric.WithDescription(what))
		errs = append(errs, err)
		return c
	}
	usage, err := m.Int64Histogram(metricTokenUsage, metric.WithUnit("{token}"), metric.WithDescription("tokens that models read and wrote"),
		metric.WithExplicitBucketBoundaries(usageBuckets...))
	errs = append(errs, err)
	out := &metrics{
		request:        seconds(metricRequestDuration, "whole request, receipt to last byte", stageBuckets),
		ttft:           seconds(metricTTFT, "receipt to first token written", ttftBuckets),
		stage:          seconds(metricStageDuration, "one disjoint stage of a request", stageBuckets),
		serverDuration: seconds(metricServerDuration, "generation, submission to last token", generationBuckets),
		serverTTFT:     seconds(metricServerTTFT, "queue and prefill of a generation", ttftBuckets),
		serverTPOT:     seconds(metricServerTPOT, "time per token after the first", tpotBuckets),
		input:          count(metricInputTokens, "{token}", "prompt tokens of a request"),
		output:         count(metricOutputTokens, "{token}", "generated tokens of a request"),
		retrieved:      count(metricRetrieved, "{chunk}", "chunks retrieved for a request"),
		used:           count(metricUsed, "{chunk}", "chunks presented to the model"),
		cached:         count(metricCachedTokens, "{token}", "prompt tokens of a request found in the prefix cache"),
		droppedTokens:  total(metricDroppedTokens, "{token}", "tokens of retrieved chunks that were not presented, by reason"),
		droppedChunks:  total(metricDroppedChunks, "{chunk}", "retrieved chunks that were not presented, by reason"),
		usage:          usage,
	}
	return out, errors.Join(append(errs, out.spent.watch(m))...)
}

func (m *metrics) record(ctx context.Context, route string, t Timings, s Summary) {
	outcome := m.labels.of(labels{route: route, outcome: s.Outcome})
	m.request.Record(ctx, t.Total.Seconds(), outcome)
	for _, r := range t.Rows() {
		if r.Duration > 0 {
			m.stage.Record(ctx, r.Duration.Seconds(), m.labels.of(labels{stage: r.Name}))
		}
	}
	if t.TTFT > 0 {
		m.ttft.Record(ctx, t.TTFT.Seconds(), outcome)
	}
	if s.retrieved(t) {
		m.retrieved.Record(ctx, int64(s.RetrievedChunks))
	}
	if s.presented(t) {
		m.used.Record(ctx, int64(s.UsedChunks))
	}
	for _, d := range s.Dropped {
		reason := m.labels.of(labels{reason: d.Reason})
		m.droppedTokens.Add(ctx, int64(d.Tokens), reason)
		m.droppedChunks.Add(ctx, int64(d.Chunks), reason)
	}
	m.spent.add(s.Cost)
	if t.generated() {
		m.recordGeneration(ctx, t, s)
	}
	m.recordUsage(ctx, t, s)
}

// recordUsage counts what models read and wrote. A prompt that no token came from may
// not have been read.
func (m *metrics) recordUsage(ctx context.Context, t Timings, s Summary) {
	operation := cmp.Or(s.Operation, operationChat)
	if operation == operationChat && !t.generated() {
		return
	}
	usage := func(kind string, tokens int) {
		if tokens > 0 {
			m.usage.Record(ctx, int64(tokens), m.labels.of(labels{operation: operation, model: s.Model, kind: kind}))
		}
	}
	usage("input", s.InputTokens)
	usage("output", s.OutputTokens)
}

func (m *metrics) recordGeneration(ctx context.Context, t Timings, s Summary) {
	model := m.labels.of(labels{operation: operationChat, model: s.Model})
	m.serverTTFT.Record(ctx, t.LLMTTFT.Seconds(), model)
	m.serverDuration.Record(ctx, (t.LLMTTFT + t.Stage(StageDecode)).Seconds(), model)
	if t.TPOT > 0 {
		m.serverTPOT.Record(ctx, t.TPOT.Seconds(), model)
	}
	m.input.Record(ctx, int64(s.InputTokens), model)
	m.output.Record(ctx, int64(s.OutputTokens), model)
	m.cached.Record(ctx, int64(s.CachedTokens), model)
}
