package tokenizer

// none is a rank for "these two do not merge".
const none = ^uint32(0)

// symbol is a run of input that is one token so far.
type symbol struct {
	id         int32 // -1 if the run is no token
	start, end int32 // of the run in the text
	prev, next int32 // neighbours, -1 at the ends
	rank       uint32
	merged     int32 // what the symbol and its right neighbour would become, at rank
}

// pairRanker tells what two neighbours merge into and how early (rank 0
// first); rank none if they do not.
type pairRanker interface {
	pair(text string, left, right *symbol) (rank uint32, merged int32)
}

// merger runs byte-pair encoding over one piece of text: always the pair of
// lowest rank, the leftmost of equals, until no neighbours merge. A heap of
// candidates makes that O(n log n). It is reused from piece to piece.
type merger struct {
	symbols []symbol
	heap    []uint64 // rank<<32 | index of the left symbol, a binary min-heap
}

func (m *merger) reset() { m.symbols, m.heap = m.symbols[:0], m.heap[:0] }

// add appends a symbol behind the last one.
func (m *merger) add(id, start, end int32) {
	i := int32(len(m.symbols))
	m.symbols = append(m.symbols, symbol{id: id, start: start, end: end, prev: i - 1, next: i + 1})
}

// run merges what was added; the symbols that remain are linked by next from 0.
func (m *merger) run(text string, r pairRanker) {
	if len(m.symbols) == 0 {
		return
	}
	m.symbols[len(m.symbols)-1].next = -1
	for i := range m.symbols {
		m.consider(text, r, int32(i))
	}
	for len(m.heap) > 0 {
		top := m.pop()
		left := &m.symbols[uint32(top)]
		if left.rank != uint32(top>>32) {
			continue // one of the two was merged meanwhile
		}
		right := &m.symbols[left.next]
		left.id, left.end, left.next = left.merged, right.end, right.next
		right.rank = none
		if left.next >= 0 {
			m.symbols[left.next].prev = int32(uint32(top))
		}
		m.consider(text, r, int32(uint32(top)))
		if left.prev >= 0 {
			m.consider(text, r, left.prev)
		}
	}
}

// consider ranks symbol i with its right neighbour and queues the pair.
func (m *merger) consider(text string, r pairRanker, i int32) {
	s := &m.symbols[i]
	s.rank = none
	if s.next < 0 {
		return
	}
	s.rank, s.merged = r.pair(text, s, &m.symbols[s.next])
	if s.rank != none {
		m.push(uint64(s.rank)<<32 | uint64(uint32(i)))
	}
}

func (m *merger) push(v uint64) {
	h := append(m.heap, v)
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent] <= v {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = v
	m.heap = h
}

func (m *merger) pop() uint64 {
	h := m.heap
	top, v := h[0], h[len(h)-1]
	h = h[:len(h)-1]
	m.heap = h
	if len(h) == 0 {
		return top
	}
	i := 0
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1] < h[child] {
			child++
		}
		if h[child] >= v {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = v
	return top
}
