//go:build cuda && cgo

package cudrv

/*
#include "extra.h"
*/
import "C"

import (
	"errors"
	"unsafe"
)

// Graph is captured work that is launched as one.
type Graph struct{ exec C.CUgraphExec }

func (s Stream) c() C.CUstream { return *(*C.CUstream)(unsafe.Pointer(&s.s)) }

// Capture records what f queues on the stream, which does not run, as a graph.
func (s Stream) Capture(f func() error) (*Graph, error) {
	if err := code(C.cuStreamBeginCapture(s.c(), C.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)); err != nil {
		return nil, failed("begin a capture", err)
	}
	err := f()
	var graph C.CUgraph
	// A capture has to be ended whatever happened in it.
	if end := code(C.cuStreamEndCapture(s.c(), &graph)); end != nil {
		return nil, errors.Join(err, failed("end a capture", end))
	}
	defer C.cuGraphDestroy(graph)
	if err != nil {
		return nil, err
	}
	g := &Graph{}
	if err := code(C.cuGraphInstantiate(&g.exec, graph, 0)); err != nil {
		return nil, failed("instantiate a graph", err)
	}
	return g, nil
}

// Launch queues the graph's work on a stream.
func (g *Graph) Launch(s Stream) error {
	return failed("launch a graph", code(C.cuGraphLaunch(g.exec, s.c())))
}

// Close frees the graph.
func (g *Graph) Close() error { return failed("destroy a graph", code(C.cuGraphExecDestroy(g.exec))) }
