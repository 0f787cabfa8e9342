package model

import (
	"errors"
	"fmt"
)

// Stage is a run of a decoder's layers on one backend.
type Stage struct {
	Ops    Ops
	Layers int
}

// StageOps is what a backend has besides Ops when it may run a part of the layers:
// the activations between two of them leave it or come from another backend.
type StageOps interface {
	// Rows ends the step and returns x, row after row. The values are valid until the
	// next step.
	Rows(x Tensor) ([]float32, error)
	// SetRows sets x to values that Rows of another backend returned in this step, which
	// has the same rows there.
	SetRows(x Tensor, values []float32)
}

// ErrNoStage says that a backend runs whole models only.
var ErrNoStage = errors.New("the backend does not run a part of the layers")

// stage is a run of layers with what they need on their backend.
type stage struct {
	ops    Ops
	first  int // layer of the model
	layers []decoderLayer
	cache  Cache
	bytes  int64 // of weights

	x, q, k, v, attention Tensor
}

// run is the step through the stage's layers.
func (s *stage) run() {
	for i := range s.layers {
		l := &s.layers[i]
		s.ops.Project(s.x, l.norm, l.qkv...)
		s.ops.Append(s.cache, i, s.q, s.k, s.v, l.rotation)
		s.ops.Attend(s.attention, s.q, s.cache, i, l.attention)
		s.ops.Residual(s.x, s.attention, l.out, l.post)
		s.ops.FeedForward(s.x, &l.ffn)
	}
}

// follow takes up the step where the stage before ended.
func (s *stage) follow(before *stage, b Batch) error {
	values, err := before.ops.(StageOps).Rows(before.x)
	if err != nil {
		return err
	}
	s.ops.Begin(b)
	s.ops.(StageOps).SetRows(s.x, values)
	return nil
}

// stagesOf checks how a model of so many layers is to be split; what lies on ops comes
// last.
func (c *LoadConfig) stagesOf(layers int, ops Ops) ([]Stage, error) {
	last := Stage{Ops: ops, Layers: layers}
	for i, s := range c.Before {
		if last.Layers -= s.Layers; s.Layers < 1 || last.Layers < 1 {
			return nil, fmt.Errorf("%w: stage %d of %d layers: each has at least one of the model's %d", ErrConfig, i, s.Layers, layers)
		}
	}
	stages := append(append([]Stage(nil), c.Before...), last)
	if len(stages) == 1 {
		return stages, nil
	}
	for _, s := range stages {
		if _, ok := s.Ops.(StageOps); !ok {
			return nil, fmt.Errorf("%w: %s", ErrNoStage, s.Ops.Name())
		}
	}
	return stages, nil
}

// Place is where a run of layers lies, and what it takes there in bytes. The embedding
// lies with the first layer, the output matrix with the last.
type Place struct {
	Backend        string
	First, Layers  int
	Weights, Cache int64
}

// Last is the number of the last layer.
func (p Place) Last() int { return p.First + p.Layers - 1 }

// String is one line for a person.
func (p Place) String() string {
	return fmt.Sprintf("layers %d to %d on %s: %s of weights, %s of KV cache", p.First, p.Last(), p.Backend, size(p.Weights), size(p.Cache))
}

// Places lists the runs of layers in their order; one for a model on one backend.
func (m *Llama) Places() []Place {
	list := make([]Place, len(m.stages))
	for i := range m.stages {
		s := &m.stages[i]
		list[i] = Place{Backend: s.ops.Name(), First: s.first, Layers: len(s.layers), Weights: s.bytes, Cache: s.cache.Bytes()}
	}
	return list
}
