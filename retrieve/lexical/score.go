package lexical

import (
	"math"
	"math/bits"
	"sync"

	"ragd/ingest/postings"
)

// The parameters of BM25: how soon further occurrences of a term count less, and
// how much a long chunk is held against it.
const (
	k1 = 1.2
	b  = 0.75
)

// stats are what BM25 needs of a collection.
type stats struct {
	chunks int64
	terms  int64 // of all chunks together
}

// idf of a term that n chunks hold.
func (s stats) idf(n int64) float64 {
	chunks := float64(max(s.chunks, n))
	return math.Log(1 + (chunks-float64(n)+0.5)/(float64(n)+0.5))
}

// norm returns the part of BM25's denominator that is constant, and the part that
// grows with a chunk's length.
func (s stats) norm() (constant, slope float32) {
	average := 1.0
	if s.chunks > 0 && s.terms > 0 {
		average = float64(s.terms) / float64(s.chunks)
	}
	return k1 * (1 - b), float32(k1 * b / average)
}

// list is a posting list of a question's term.
type list struct {
	term string
	// weight is the most that the term can add to a score.
	weight float32
	data   []byte
}

// window is how many chunk ids are scored together: their sums fit into a
// processor's second-level cache.
const window = 1 << 16

// accumulator scores a window of chunks at a time. It is empty between windows.
type accumulator struct {
	sums    [window]float32
	touched [window / 64]uint64
}

// accumulators are kept for the next question: clearing a new one costs as much as
// scoring thousands of postings.
var accumulators = sync.Pool{New: func() any { return new(accumulator) }}

// score calls emit with every chunk that one of the lists holds, in the order of
// ids, and its BM25 score. A list's chunks may be those of another list.
func score(lists []list, s stats, emit func(chunk int64, score float32)) error {
	constant, slope := s.norm()
	cursors := make([]cursor, 0, len(lists))
	for _, l := range lists {
		c := cursor{Reader: postings.NewReader(l.data), weight: l.weight}
		if c.Next() {
			cursors = append(cursors, c)
		} else if c.Err() != nil {
			return c.Err()
		}
	}
	acc := accumulators.Get().(*accumulator)
	for len(cursors) > 0 {
		start := lowest(cursors) &^ (window - 1)
		rest := cursors[:0]
		for _, c := range cursors {
			if acc.add(&c, start, constant, slope) {
				rest = append(rest, c)
			} else if c.Err() != nil {
				return c.Err() // and drop the accumulator, which is not empty
			}
		}
		cursors = rest
		acc.drain(start, emit)
	}
	accumulators.Put(acc)
	return nil
}

// cursor is a place in a list.
type cursor struct {
	postings.Reader
	weight float32
}

func lowest(cursors []cursor) int64 {
	low := cursors[0].Chunk
	for _, c := range cursors[1:] {
		low = min(low, c.Chunk)
	}
	return low
}

// add takes in a list's postings of the window and says whether there are more
// behind it.
func (a *accumulator) add(c *cursor, start int64, constant, slope float32) bool {
	for c.Chunk < start+window {
		i := c.Chunk - start
		count := float32(c.Count)
		a.sums[i] += c.weight * count / (count + constant + slope*float32(c.Length))
		a.touched[i/64] |= 1 << (i % 64)
		if !c.Next() {
			return false
		}
	}
	return true
}

// drain hands out the sums of the window and clears it.
func (a *accumulator) drain(start int64, emit func(chunk int64, score float32)) {
	for w, word := range &a.touched {
		for ; word != 0; word &= word - 1 {
			i := w*64 + bits.TrailingZeros64(word)
			emit(start+int64(i), a.sums[i])
			a.sums[i] = 0
		}
		a.touched[w] = 0
	}
}
