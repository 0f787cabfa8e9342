package hybrid_test

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"ragd/ingest"
	"ragd/retrieve"
	"ragd/retrieve/hybrid"
	"ragd/retrieve/lexical"
	"ragd/retrieve/vector"
)

// version is a document whose chunks all begin with a word, at rising angles.
func version(path, word string, chunks int) ingest.Encoded {
	e := ingest.Encoded{Document: ingest.Document{Path: path, Title: path, Hash: word, Type: "text/plain", Charset: "utf-8"}}
	for i := range chunks {
		text := fmt.Sprintf("%s is the pet, part %d", word, i)
		e.Chunks = append(e.Chunks, ingest.Chunk{Ordinal: i, Text: text, End: len(text), Tokens: 1})
		e.Vectors = append(e.Vectors, at(0.1+0.01*float64(i)))
	}
	return e
}

func (r *rig) putDocument(e ingest.Encoded) {
	r.Helper()
	if _, err := r.store.Put(r.Context(), "default", model, "r", e); err != nil {
		r.Error(err)
	}
}

// whole says which version of the document the hits hold, or what is wrong.
func whole(hits []retrieve.Hit, sizes map[string]int) (string, error) {
	word, n := "", 0
	for _, h := range hits {
		if h.Document.Path != "pet" {
			continue
		}
		w, _, _ := strings.Cut(h.Chunk.Text, " ")
		if n++; word != "" && w != word {
			return "", fmt.Errorf("%s and %s in one answer", word, w)
		}
		word = w
	}
	if n != sizes[word] || n == 0 {
		return "", fmt.Errorf("%d chunks of %q, want %d", n, word, sizes[word])
	}
	return word, nil
}

// TestReplacedIsWhole: while a document is replaced, each search finds all chunks of
// one version of it, never of both and never none. A commit falls into every search.
func TestReplacedIsWhole(t *testing.T) {
	r := newRig(t, hybrid.DefaultConfig())
	for i := range 20 {
		r.put(fmt.Sprintf("other%d", i), "nothing of the kind", at(1))
	}
	sizes := map[string]int{"fish": 3, "plant": 5}
	versions := []ingest.Encoded{version("pet", "fish", 3), version("pet", "plant", 5)}
	r.putDocument(versions[0])
	seen := map[string]int{}
	for round := range 60 {
		var replacing sync.WaitGroup
		replacing.Go(func() { r.putDocument(versions[(round+1)%2]) })
		hits, err := r.Retrieve(t.Context(), query("pet", at(0), 30))
		replacing.Wait()
		if err != nil {
			t.Fatal(err)
		}
		word, err := whole(hits, sizes)
		if err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		seen[word]++
	}
	if len(seen) != 2 {
		t.Errorf("only %v was seen: no commit fell into a search", seen)
	}
}

// TestDeletedNeverAnswers: from the moment that a deletion returned, no side finds
// the document, however many others are searched, written and merged meanwhile.
func TestDeletedNeverAnswers(t *testing.T) {
	r := newRig(t, hybrid.DefaultConfig())
	dense, words := vector.New(r.pool, tenant, vector.Config{ExactBelow: 1}), lexical.New(r.pool, tenant, lexical.Analyzer{})
	// Enough to become a segment, so that deleted chunks are marked dead in it.
	for i := range 3 {
		r.putDocument(version(fmt.Sprintf("filler%d", i), "stone", 200))
	}
	if err := r.store.BuildIndex(t.Context(), "default"); err != nil {
		t.Fatal(err)
	}
	const documents = 80
	for i := range documents {
		r.putDocument(version(fmt.Sprintf("doc%02d", i), fmt.Sprintf("serial%02d", i), 8))
	}
	var gone atomic.Int32 // documents below are deleted
	var readers sync.WaitGroup
	found := make([]atomic.Int32, 3)
	for side := range found {
		readers.Go(func() {
			for k := 0; gone.Load() < documents; k++ {
				before := int(gone.Load())
				i := (before + k%4 - 1) % documents
				if i < 0 {
					continue
				}
				q := query(fmt.Sprintf("serial%02d", i), at(0.1), 400)
				docs, err := r.side(side, dense, words, q)
				if err != nil {
					t.Error(err)
					return
				}
				for _, c := range docs {
					if c < before {
						t.Errorf("side %d finds document %d, %d were deleted", side, c, before)
						return
					}
					found[side].Add(1)
				}
			}
		})
	}
	for i := range documents {
		if n, err := r.store.Delete(t.Context(), "default", []string{fmt.Sprintf("doc%02d", i)}); err != nil || n != 1 {
			t.Errorf("delete %d: %d, %v", i, n, err)
		}
		gone.Store(int32(i + 1))
	}
	readers.Wait()
	for side := range found {
		if found[side].Load() == 0 {
			t.Errorf("side %d never found anything", side)
		}
	}
}

// side asks one of the sides, or both, and returns the numbers of the documents of
// the chunks it finds.
func (r *rig) side(side int, dense retrieve.Retriever, words *lexical.Searcher, q retrieve.Query) ([]int, error) {
	var hits []retrieve.Hit
	var err error
	switch side {
	case 0:
		hits, err = dense.Retrieve(r.Context(), q)
	case 1:
		hits, err = r.Retrieve(r.Context(), q)
	case 2:
		return r.wordsOf(words, q)
	}
	var out []int
	for _, h := range hits {
		var n int
		if _, err := fmt.Sscanf(h.Document.Path, "doc%d", &n); err == nil {
			out = append(out, n)
		}
	}
	return out, err
}

// wordsOf returns the document of each chunk that holds the serial number asked for.
func (r *rig) wordsOf(words *lexical.Searcher, q retrieve.Query) ([]int, error) {
	m, err := words.Search(r.Context(), q)
	if err != nil {
		return nil, err
	}
	var n int
	if _, err := fmt.Sscanf(q.Text, "serial%d", &n); err != nil {
		return nil, err
	}
	out := make([]int, m.Len())
	for i := range out {
		out[i] = n
	}
	return out, nil
}
