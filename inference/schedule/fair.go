package schedule

import (
	"maps"
	"slices"
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
// to be admitted. It returns indices into waiting. A tenant's own keep their order.
func (f *Fair) Order(waiting []Waiting) []int {
	next := make(map[string]float64, len(f.used)+1)
	left := make([]int, len(waiting))
	for i, w := range waiting {
		left[i] = i
		next[w.Tenant] = f.Served(w.Tenant)
	}
	order := make([]int, 0, len(waiting))
	for len(left) > 0 {
		first := 0
		for i, w := range left {
			if next[waiting[w].Tenant] < next[waiting[left[first]].Tenant] {
				first = i
			}
		}
		w := &waiting[left[first]]
		next[w.Tenant] += float64(w.Tokens)
		order = append(order, left[first])
		left = slices.Delete(left, first, first+1)
	}
	return order
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
