package model

import (
	"fmt"

	"ragd/inference/quant"
)

// RoomOps is what a backend with memory of its own has besides Ops: a model that does
// not fit is refused before the first of it is loaded.
type RoomOps interface {
	// Room is the free memory and all there is, in bytes.
	Room() (free, total int64, err error)
	// MatrixBytes and CacheBytes are what LoadMatrix and NewCache would take.
	MatrixBytes(t quant.Type, rows, cols int) int64
	CacheBytes(s CacheShape) int64
}

// RoomError tells that a model does not fit.
type RoomError struct {
	Weights, Cache int64 // bytes needed
	CacheTokens    int   // that the cache is for
	Free, Total    int64 // bytes there are
}

func (e *RoomError) Error() string {
	return fmt.Sprintf("the model does not fit: %s of weights and %s of KV cache for %d tokens are needed, %s of %s are free",
		size(e.Weights), size(e.Cache), e.CacheTokens, size(e.Free), size(e.Total))
}

func size(bytes int64) string {
	if bytes < 1<<30 {
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
}

// checkRoom compares what the container's tensors and the cache take with what is free.
// The activations of a step come on top, so a model that passes may still be refused.
func (l *loader) checkRoom(s CacheShape) error {
	ops, ok := l.ops.(RoomOps)
	if !ok {
		return nil
	}
	free, total, err := ops.Room()
	if err != nil {
		return err
	}
	e := &RoomError{Cache: ops.CacheBytes(s), CacheTokens: s.Blocks * BlockTokens, Free: free, Total: total}
	for _, name := range l.src.names() {
		if t, ok := l.src.info(name); ok {
			e.Weights += ops.MatrixBytes(t.typ, t.rows, t.cols)
		}
	}
	if e.Weights+e.Cache > free {
		return e
	}
	return nil
}
