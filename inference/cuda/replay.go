//go:build cuda && cgo

package cuda

import (
	"bytes"

	"ragd/inference/cuda/cudrv"
)

// replay keeps steps that come again as graphs, so that the device starts a decode
// step with one launch instead of hundreds. A step is known by everything its launches
// hold, addresses included: where a buffer moved, it is another step.
type replay struct {
	graphs map[string]*cudrv.Graph
	last   []byte // the step before
	count  int    // steps that were replayed
}

// maxGraphs bounds the steps that are kept. Decoding needs one for each number of
// running answers and again when attention takes another section.
const maxGraphs = 32

// runPlan queues the recorded launches, as a graph from the second time in a row
// on. It runs on the device's thread.
func (b *Backend) runPlan() error {
	r, key := &b.replay, b.plan.key()
	if g, ok := r.graphs[string(key)]; ok {
		r.count++
		return g.Launch(b.stream)
	}
	if !bytes.Equal(key, r.last) {
		r.last = append(r.last[:0], key...)
		return b.plan.run(b.stream)
	}
	if len(r.graphs) >= maxGraphs {
		if err := r.free(); err != nil {
			return err
		}
	}
	g, err := b.stream.Capture(func() error { return b.plan.run(b.stream) })
	if err != nil {
		return err
	}
	if r.graphs == nil {
		r.graphs = make(map[string]*cudrv.Graph)
	}
	r.graphs[string(key)] = g
	return g.Launch(b.stream)
}

// free forgets all graphs. None may be running.
func (r *replay) free() error {
	var first error
	for _, g := range r.graphs {
		if err := g.Close(); first == nil {
			first = err
		}
	}
	r.graphs = nil
	return first
}
