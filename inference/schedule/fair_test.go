package schedule

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// queue is requests of 10 tokens each of the tenants named.
func queue(tenants ...string) []Waiting {
	w := make([]Waiting, len(tenants))
	for i, t := range tenants {
		w[i] = Waiting{t, 10}
	}
	return w
}

func TestOrder(t *testing.T) {
	for _, c := range []struct {
		name    string
		waiting []Waiting
		started []Waiting
		want    []int
	}{
		{"nobody waits", nil, queue("a"), []int{}},
		{"one tenant: first come, first served", queue("a", "a", "a"), queue("a"), []int{0, 1, 2}},
		{"a busy tenant lets another go first", queue("a", "a", "b"), queue("a"), []int{2, 0, 1}},
		{"a flood and a latecomer", queue("a", "a", "a", "b"), nil, []int{0, 3, 1, 2}},
		{"equals take turns", queue("a", "a", "b", "b"), nil, []int{0, 2, 1, 3}},
		{"long requests count for more", []Waiting{{"a", 30}, {"a", 10}, {"b", 10}, {"b", 10}, {"b", 10}, {"b", 10}}, nil, []int{0, 2, 3, 4, 1, 5}},
		{"what was served counts", queue("a", "b"), []Waiting{{"a", 10}, {"b", 5}, {"b", 30}, {"a", 10}}, []int{0, 1}},
	} {
		var f Fair
		for _, s := range c.started {
			f.Start(s.Tenant, s.Tokens)
		}
		if got := f.Order(c.waiting); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestReturnedTokensCountForNothing(t *testing.T) {
	var f Fair
	f.Start("a", 1000)
	f.Start("b", 100)
	if got := f.Order(queue("a", "b")); !slices.Equal(got, []int{1, 0}) {
		t.Errorf("%v before, want b first", got)
	}
	f.Return("a", 995)
	f.Return("nobody", 5)
	if got := f.Order(queue("b", "a")); !slices.Equal(got, []int{1, 0}) {
		t.Errorf("%v after, want a first", got)
	}
}

func drawQueue(t *rapid.T, name string, tenants int) []Waiting {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Waiting {
		return Waiting{fmt.Sprint("t", rapid.IntRange(1, tenants).Draw(t, "tenant")), rapid.IntRange(1, 500).Draw(t, "tokens")}
	}), 0, 30).Draw(t, name)
}

// orderBySelection is the order by its definition: the tenant whose time is earliest
// comes next, of equal ones the request that came first. It takes n² steps.
func orderBySelection(f *Fair, waiting []Waiting) []int {
	next := make(map[string]float64)
	left := make([]int, len(waiting))
	for i, w := range waiting {
		left[i], next[w.Tenant] = i, f.Served(w.Tenant)
	}
	order := []int{}
	for len(left) > 0 {
		first := 0
		for i, w := range left {
			if next[waiting[w].Tenant] < next[waiting[left[first]].Tenant] {
				first = i
			}
		}
		w := waiting[left[first]]
		next[w.Tenant] += float64(w.Tokens)
		order = append(order, left[first])
		left = slices.Delete(left, first, first+1)
	}
	return order
}

func TestOrderIsTheOneDefined(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f Fair
		// Few tenants and requests of few sizes: times are often equal.
		tenants := rapid.IntRange(1, 6).Draw(t, "tenants")
		for _, s := range drawQueue(t, "started", tenants) {
			f.Start(s.Tenant, s.Tokens)
		}
		waiting := drawQueue(t, "waiting", tenants)
		if rapid.Bool().Draw(t, "alike") {
			for i := range waiting {
				waiting[i].Tokens = 1 + waiting[i].Tokens%2
			}
		}
		if got, want := f.Order(waiting), orderBySelection(&f, waiting); !slices.Equal(got, want) {
			t.Fatalf("%v, want %v", got, want)
		}
	})
}

// The order is made anew for every request that comes and in every step while some
// wait, so its cost is that of a flood.
func BenchmarkOrder(b *testing.B) {
	for _, n := range []int{16, 128, 1024, 8192} {
		var f Fair
		waiting := make([]Waiting, n)
		for i := range waiting {
			waiting[i] = Waiting{fmt.Sprint("t", i%37), 100 + i%13}
		}
		for name, order := range map[string]func([]Waiting) []int{
			"heap": f.Order, "selection": func(w []Waiting) []int { return orderBySelection(&f, w) },
		} {
			b.Run(fmt.Sprint(name, "/", n), func(b *testing.B) {
				for b.Loop() {
					order(waiting)
				}
			})
		}
	}
}

func TestOrderIsAPermutation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var f Fair
		for _, s := range drawQueue(t, "started", 3) {
			f.Start(s.Tenant, s.Tokens)
		}
		waiting := drawQueue(t, "waiting", 3)
		order := f.Order(waiting)
		last := make(map[string]int)
		seen := make(map[int]bool)
		for _, i := range order {
			if before, ok := last[waiting[i].Tenant]; ok && before > i {
				t.Fatalf("%v: request %d of a tenant before its earlier %d", order, before, i)
			}
			last[waiting[i].Tenant] = i
			seen[i] = true
		}
		if len(order) != len(waiting) || len(seen) != len(waiting) {
			t.Fatalf("%v is no permutation of %d", order, len(waiting))
		}
	})
}

// A tenant that asks for the first time, or after a pause, waits for one start of
// each other tenant at the most, whatever went before and however much waits.
func TestAFloodDelaysNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const tenants = 4
		var f Fair
		waiting := drawQueue(t, "flood", tenants)
		for n := rapid.IntRange(0, len(waiting)).Draw(t, "started"); n > 0; n-- {
			i := f.Order(waiting)[0]
			f.Start(waiting[i].Tenant, waiting[i].Tokens)
			waiting = slices.Delete(waiting, i, i+1)
		}
		waiting = append(waiting, Waiting{"latecomer", rapid.IntRange(1, 500).Draw(t, "tokens")})
		if place := slices.Index(f.Order(waiting), len(waiting)-1); place > tenants {
			t.Fatalf("place %d behind %d tenants", place, tenants)
		}
	})
}

// Tenants that always have something waiting are served alike, within the longest
// request of each.
func TestBackloggedTenantsAreServedAlike(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const tenants, longest = 3, 500
		var f Fair
		served := make(map[string]int)
		waiting := make([]Waiting, tenants)
		draw := func(tenant int) Waiting {
			return Waiting{fmt.Sprint(tenant), rapid.IntRange(1, longest).Draw(t, "tokens")}
		}
		for i := range waiting {
			waiting[i] = draw(i)
		}
		for range 60 {
			i := f.Order(waiting)[0]
			f.Start(waiting[i].Tenant, waiting[i].Tokens)
			served[waiting[i].Tenant] += waiting[i].Tokens
			waiting[i] = draw(i)
			for a, x := range served {
				for b, y := range served {
					if len(served) == tenants && x-y > 2*longest {
						t.Fatalf("%s was served %d tokens, %s %d", a, x, b, y)
					}
				}
			}
		}
	})
}

// What is kept is bounded by the tenants that are ahead, not by all there ever were.
func TestFairForgets(t *testing.T) {
	var f Fair
	for i := range 10_000 {
		f.Start(fmt.Sprint(i), 10)
		f.Start("steady", 10)
	}
	if n := len(f.used); n > 10 {
		t.Errorf("%d tenants remembered", n)
	}
}
