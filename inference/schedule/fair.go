package schedule

import (
	"container/heap"
	"maps"
)

// Waiting is a request that waits: whose it is, and how many tokens it may take.
type Waiting struct {
	Tenant string
	Tokens int
}

// Fair shares the engine between tenants by the tokens they were served. It is
// start-time fair queueing (Goyal, Vin, Cheng, 1996) with equal weights: each
// tenant's tokens move its own time on, the tenant whose time is earliest comes
// first, and one that had nothing to ask starts at the present, so that idleness
// earns nothing. So between tenants that all have requests waiting, none is ahead
// of another by more than one request of each, and the first request of a tenant
// waits for at most one start of each other, however many those have waiting. The
// zero value is ready.
type Fair struct {
	now  float64 // the time of the tenant that was served last, when it was
	used map[string]float64
}

// Served is where a tenant's time stands, in tokens: of two tenants the one with more
// is ahead.
func (f *Fair) Served(tenant string) float64 { return max(f.now, f.used[tenant]) }

// Order is the order in which waiting requests, given in the order of arrival, are
// to be admitted. It returns indices into waiting. A tenant's own keep their order. It
// takes n log t steps for n requests of t tenants.
func (f *Fair) Order(waiting []Waiting) []int {
	h := f.lines(waiting)
	order := make([]int, 0, len(waiting))
	for len(h) > 0 {
		l := h[0]
		order = append(order, l.requests[0])
		l.at += float64(waiting[l.requests[0]].Tokens)
		if l.requests = l.requests[1:]; len(l.requests) > 0 {
			heap.Fix(&h, 0)
		} else {
			heap.Pop(&h)
		}
	}
	return order
}

// line is the requests of one tenant that wait, as indices in the order of arrival, and
// where its time stands once those before them are served.
type line struct {
	at       float64
	requests []int
}

// lines is a heap with one line for each tenant that waits.
func (f *Fair) lines(waiting []Waiting) lineHeap {
	var h lineHeap
	of := make(map[string]*line)
	for i, w := range waiting {
		l := of[w.Tenant]
		if l == nil {
			l = &line{at: f.Served(w.Tenant)}
			of[w.Tenant] = l
			h = append(h, l)
		}
		l.requests = append(l.requests, i)
	}
	heap.Init(&h)
	return h
}

// lineHeap has the earliest time on top, and of equal ones whose request came first.
type lineHeap []*line

func (h lineHeap) Len() int { return len(h) }

func (h lineHeap) Less(i, j int) bool {
	if h[i].at != h[j].at {
		return h[i].at < h[j].at
	}
	return h[i].requests[0] < h[j].requests[0]
}

func (h lineHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

// Push is part of heap.Interface.
func (h *lineHeap) Push(l any) { *h = append(*h, l.(*line)) }

// Pop is part of heap.Interface.
func (h *lineHeap) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	*h = (*h)[:last]
	return l
}

// Start charges a tenant for a request that starts, with the tokens it may take.
func (f *Fair) Start(tenant string, tokens int) {
	if f.used == nil {
		f.used = make(map[string]float64)
	}
	at := f.Served(tenant)
	f.now = at
	f.used[tenant] = at + float64(tokens)
	// Whoever is not ahead of the present need not be remembered.
	maps.DeleteFunc(f.used, func(_ string, used float64) bool { return used <= f.now })
}

// Return gives back what a request that ended did not take.
func (f *Fair) Return(tenant string, tokens int) {
	if used, ok := f.used[tenant]; ok {
		f.used[tenant] = used - float64(tokens)
	}
}
