package model

import (
	"fmt"

	"ragd/inference/quant"
)

// SizeOps is what a backend may have besides Ops: it knows what it would take.
type SizeOps interface {
	// MatrixBytes and CacheBytes are what LoadMatrix and NewCache would take.
	MatrixBytes(t quant.Type, rows, cols int) int64
	CacheBytes(s CacheShape) int64
}

// RoomOps is what a backend with memory of its own has besides Ops: a model that does
// not fit is refused before the first of it is loaded.
type RoomOps interface {
	SizeOps
	// Room is the free memory and all there is, in bytes.
	Room() (free, total int64, err error)
	// StepBytes is what the activations of steps up to that size take at the most.
	StepBytes(c Config, s StepShape) int64
}

// StepShape is the size of a step: its rows, those of them that want logits, and the
// positions of its longest sequence.
type StepShape struct{ Rows, Logits, Longest int }

// RoomError tells that a model, or a run of its layers, does not fit.
type RoomError struct {
	Need
	CacheTokens  int   // that the cache is for
	Free, Total  int64 // bytes there are
	First, Count int   // the layers
	Of           int   // layers of the model
	Fit          int   // how many of them would fit, the last ones first
}

func (e *RoomError) Error() string {
	what := "the model does not fit"
	if e.Count < e.Of {
		what = fmt.Sprintf("layers %d to %d do not fit", e.First, e.First+e.Count-1)
	}
	step := ""
	if e.Step > 0 {
		step = fmt.Sprintf(" and %s for a step", size(e.Step))
	}
	return fmt.Sprintf("%s: %s of weights, %s of KV cache for %d tokens%s are needed, %s of %s are free; %d of %d layers would fit",
		what, size(e.Weights), size(e.Cache), e.CacheTokens, step, size(e.Free), size(e.Total), e.Fit, e.Of)
}

func size(bytes int64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}

// checkRoom compares what the stages take with what is free on their backends.
func (l *loader) checkRoom(spec *decoderSpec, stages []Stage, cfg LoadConfig) error {
	first := 0
	for _, s := range stages {
		end := first + s.Layers
		if ops, ok := s.Ops.(RoomOps); ok {
			if err := needsOf(l.src, spec, ops, cfg).Check(first, end); err != nil {
				return err
			}
		}
		first = end
	}
	return nil
}
