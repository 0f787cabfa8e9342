package telemetry

import (
	"sync"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"
)

// labels are those of one series; the fields that are empty are none of its labels.
type labels struct {
	route   string
	outcome Outcome
	stage   string
	reason  string

	// The conventions' for the work of a model; provider goes with the operation.
	operation, model, kind string
}

func (l labels) set() attribute.Set {
	var attrs []attribute.KeyValue
	add := func(name, value string) { attrs = append(attrs, attribute.String(name, value)) }
	if l.route != "" {
		add("route", l.route)
		add("outcome", string(l.outcome))
	}
	if l.stage != "" {
		add("stage", l.stage)
	}
	if l.reason != "" {
		add("reason", l.reason)
	}
	if l.operation != "" {
		add(attrOperation, l.operation)
		add(attrProvider, provider)
		add(attrRequestModel, l.model)
	}
	if l.kind != "" {
		add(attrTokenType, l.kind)
	}
	return attribute.NewSet(attrs...)
}

// mostLabels bounds what is kept. Labels are bounded themselves; the bound holds
// should a caller's word ever become one.
const mostLabels = 1024

// labelSets keeps the sets of labels: sorting a set anew costs as much as the
// measurement that it is for.
type labelSets struct {
	kept  sync.Map // labels → metric.MeasurementOption
	count atomic.Int64
}

func (s *labelSets) of(l labels) metric.MeasurementOption {
	if kept, ok := s.kept.Load(l); ok {
		return kept.(metric.MeasurementOption)
	}
	made := metric.WithAttributeSet(l.set())
	if s.count.Load() < mostLabels {
		s.count.Add(1)
		s.kept.Store(l, made)
	}
	return made
}
