package kernel

import (
	"reflect"
	"testing"
)

// TestSetsAreComplete: no set has a kernel missing, names differ, and the best
// is one of them.
func TestSetsAreComplete(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Sets() {
		v := reflect.ValueOf(*s)
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("%s has no %s", s.Name, v.Type().Field(i).Name)
			}
		}
		if seen[s.Name] {
			t.Errorf("two sets are called %s", s.Name)
		}
		seen[s.Name] = true
	}
	if !seen[Best().Name] || !seen["portable"] {
		t.Errorf("best is %s of %v", Best().Name, seen)
	}
}
