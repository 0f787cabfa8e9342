package ingest

import (
	"sync/atomic"
	"time"
)

// Times says where a run's time went. The stations work side by side, so their
// times may sum up to more than the run's. Embed over Elapsed is the share of the
// run in which vectors were computed; the rest of it nothing was there to embed.
type Times struct {
	// Read is loading, hashing and extracting; Chunk cutting, with the counting of tokens.
	Read  time.Duration `json:"read_ns"`
	Chunk time.Duration `json:"chunk_ns"`
	Embed time.Duration `json:"embed_ns"`
	// Store is that of all writers together: the index of words and the transactions.
	Store time.Duration `json:"store_ns"`
}

// stopwatch sums the time of one station. It may run in several goroutines at once.
type stopwatch struct{ sum atomic.Int64 }

// since adds the time from start to now.
func (s *stopwatch) since(start time.Time) { s.sum.Add(int64(time.Since(start))) }

func (s *stopwatch) total() time.Duration { return time.Duration(s.sum.Load()) }

// watches are the stations of a run.
type watches struct{ read, chunk, store stopwatch }

func (w *watches) times(embed *stopwatch) Times {
	return Times{Read: w.read.total(), Chunk: w.chunk.total(), Embed: embed.total(), Store: w.store.total()}
}
