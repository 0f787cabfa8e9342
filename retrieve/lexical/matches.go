package lexical

import (
	"cmp"
	"slices"
)

// Match is a chunk with its BM25 score.
type Match struct {
	Chunk int64
	Score float32
}

// Matches are all chunks that hold a word of a question.
type Matches struct {
	// Possible is the score of a chunk that would hold every word of the question
	// without end: Σ idf·(k1+1). A score over it says how much of the question a
	// chunk answers to, whatever the collection.
	Possible float32

	list []Match // in the order of ids
	// top, when it is not nil, is what Top returns: the list then holds chunks that
	// the filters do not let pass.
	top []Match
	// named holds the chunks with a rare identifier of the question.
	named map[int64]bool
}

// Len is how many chunks match, of those that Top can return.
func (m *Matches) Len() int {
	if m.top != nil {
		return len(m.top)
	}
	return len(m.list)
}

// Score is the score of a chunk that passes the filters, 0 when no word of the
// question is in it.
func (m *Matches) Score(chunk int64) float32 {
	i, ok := slices.BinarySearchFunc(m.list, chunk, func(e Match, id int64) int { return cmp.Compare(e.Chunk, id) })
	if !ok {
		return 0
	}
	return m.list[i].Score
}

// Share is a score over Possible, 0 to 1.
func (m *Matches) Share(score float32) float32 {
	if m.Possible <= 0 {
		return 0
	}
	return score / m.Possible
}

// Names says whether a chunk holds an identifier of the question, whole, that few
// chunks hold. It is about what was asked for, whatever the other words are.
func (m *Matches) Names(chunk int64) bool { return m.named[chunk] }

// Top returns the best k matches, best first; of equal ones the older chunk.
func (m *Matches) Top(k int) []Match {
	if m.top != nil {
		return m.top[:max(0, min(k, len(m.top)))]
	}
	k = min(k, len(m.list))
	if k <= 0 {
		return nil
	}
	best := slices.Clone(m.list[:k]) // a heap, the worst in front
	slices.SortFunc(best, func(a, b Match) int { return compare(b, a) })
	for _, e := range m.list[k:] {
		// Of equal ones the older stays, and e is the younger: the list is in the order of ids.
		if e.Score > best[0].Score {
			best[0] = e
			sink(best)
		}
	}
	slices.SortFunc(best, compare)
	return best
}

// compare puts the better match first.
func compare(a, b Match) int {
	return cmp.Or(cmp.Compare(b.Score, a.Score), cmp.Compare(a.Chunk, b.Chunk))
}

// sink moves the front of a heap to where it belongs.
func sink(heap []Match) {
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(heap) {
			return
		}
		if child+1 < len(heap) && compare(heap[child], heap[child+1]) < 0 {
			child++
		}
		if compare(heap[i], heap[child]) >= 0 {
			return
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}
