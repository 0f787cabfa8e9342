package ingest

import (
	"fmt"
	"testing"
)

// TestVectorsAreBounded: memory holds two generations, and what is asked for stays.
func TestVectorsAreBounded(t *testing.T) {
	const dim, texts = 16, 20
	v := newVectors(texts*(4*dim+entryBytes), dim)
	kept := keyOf("kept")
	v.put(kept, Embedding{Tokens: 7})
	for i := range 1000 {
		v.put(keyOf(fmt.Sprint(i)), Embedding{Tokens: i})
		if n := len(v.young) + len(v.old); n > texts {
			t.Fatalf("after %d texts %d are kept, want at most %d", i+1, n, texts)
		}
		if e, ok := v.get(kept); !ok || e.Tokens != 7 {
			t.Fatalf("after %d texts the one that is asked for is %+v, %t", i+1, e, ok)
		}
	}
	if e, ok := v.get(keyOf("999")); !ok || e.Tokens != 999 {
		t.Errorf("the last text is %+v, %t", e, ok)
	}
	if _, ok := v.get(keyOf("1")); ok {
		t.Error("the second text is still there")
	}
	none := newVectors(0, dim)
	none.put(kept, Embedding{})
	if _, ok := none.get(kept); ok {
		t.Error("a text is kept in no memory")
	}
}
