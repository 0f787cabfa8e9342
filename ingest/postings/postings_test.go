package postings

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestListRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		list := []Posting{}
		chunk := int64(0)
		for range rapid.IntRange(0, 50).Draw(t, "n") {
			chunk += rapid.Int64Range(1, 1<<40).Draw(t, "gap")
			list = append(list, Posting{chunk, rapid.Uint32Range(0, 1<<31).Draw(t, "count"), rapid.Uint32Range(0, 1<<31).Draw(t, "length")})
		}
		got, err := Decode([]Posting{}, Append(nil, list))
		if err != nil || !cmp.Equal(list, got) {
			t.Fatalf("%v came back as %v (%v)", list, got, err)
		}
	})
}

func TestDocumentRoundTrip(t *testing.T) {
	data := EncodeDocument([]int64{7, 9}, []map[string]int{{"b": 2, "a": 1}, {"b": 1}})
	var got []string
	err := EachTerm(data, func(term, list []byte) error {
		postings, err := Decode(nil, list)
		got = append(got, fmt.Sprint(string(term), postings))
		return err
	})
	if want := []string{"a[{7 1 3}]", "b[{7 2 3} {9 1 1}]"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v (%v), want %v", got, err, want)
	}
	if EncodeDocument([]int64{1}, []map[string]int{{}}) != nil {
		t.Error("a document without terms is not nil")
	}
}

func TestEachTermStopsAtErrors(t *testing.T) {
	stop := errors.New("stop")
	n := 0
	err := EachTerm(EncodeDocument([]int64{1}, []map[string]int{{"a": 1, "b": 1}}), func(_, _ []byte) error { n++; return stop })
	if !errors.Is(err, stop) || n != 1 {
		t.Errorf("%d calls, %v", n, err)
	}
}

func TestSort(t *testing.T) {
	list := []Posting{{Chunk: 5}, {Chunk: 2}, {Chunk: 9}}
	Sort(list)
	if !cmp.Equal(list, []Posting{{Chunk: 2}, {Chunk: 5}, {Chunk: 9}}) {
		t.Error(list)
	}
}

// What is read back rises, or is an error.
func FuzzDecode(f *testing.F) {
	f.Add(Append(nil, []Posting{{3, 1, 10}, {300, 2, 1000}}))
	f.Add([]byte{1, 1})
	f.Add([]byte{0, 1, 1})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := Decode(nil, data)
		if err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
		last := int64(0)
		for _, p := range list {
			if p.Chunk <= last {
				t.Fatalf("chunk %d after %d", p.Chunk, last)
			}
			last = p.Chunk
		}
		if err := EachTerm(data, func(_, _ []byte) error { return nil }); err != nil && !errors.Is(err, ErrCorrupt) {
			t.Fatal(err)
		}
	})
}

func ExampleEachTerm() {
	data := EncodeDocument([]int64{41, 42}, []map[string]int{{"pump": 2, "valv": 1}, {"pump": 1}})
	err := EachTerm(data, func(term, list []byte) error {
		for r := NewReader(list); r.Next(); {
			fmt.Printf("%s: chunk %d, %d of %d\n", term, r.Chunk, r.Count, r.Length)
		}
		return nil
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// pump: chunk 41, 2 of 3
	// pump: chunk 42, 1 of 1
	// valv: chunk 41, 1 of 3
}
