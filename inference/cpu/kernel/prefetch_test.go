package kernel

import "testing"

// Prefetch may be asked for anything, also for memory that ends where a page does.
func TestPrefetchTouchesNothing(t *testing.T) {
	for _, set := range Sets() {
		for _, n := range []int{0, 1, 31, 32, 33, 1024} {
			x := make([]uint16, n)
			for i := range x {
				x[i] = uint16(i)
			}
			set.Prefetch(x)
			for i := range x {
				if x[i] != uint16(i) {
					t.Fatalf("%s: element %d of %d changed", set.Name, i, n)
				}
			}
		}
	}
}
