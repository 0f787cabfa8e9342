package ingesttest

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ragd/ingest"
)

// TestStore holds a Store to its contract. Each call of newStore returns a
// store whose collections are empty.
func TestStore(t *testing.T, newStore func() ingest.Store) {
	t.Run("states follow puts and deletes", func(t *testing.T) { testStates(t, newStore()) })
	t.Run("a put replaces", func(t *testing.T) { testReplace(t, newStore()) })
	t.Run("collections are apart", func(t *testing.T) { testCollections(t, newStore()) })
	t.Run("one of many equal puts changes", func(t *testing.T) { testConcurrentPuts(t, newStore()) })
	t.Run("a cancelled put changes nothing", func(t *testing.T) { testCancelled(t, newStore()) })
}

// NewEncoded is a small valid document with two chunks, the first of two sentences.
func NewEncoded(path, hash string) ingest.Encoded {
	embedder := &FakeEmbedder{}
	chunks := []ingest.Chunk{
		{Ordinal: 0, Heading: []string{"Pumps"}, Text: "The pump is checked daily. It is blue.", Start: 9, End: 47, Sentences: []ingest.Span{{Start: 0, End: 26}, {Start: 27, End: 38}}},
		{Ordinal: 1, Text: "밸브는 잠겨 있다.", Start: 49, End: 73, Sentences: []ingest.Span{{Start: 0, End: 24}}},
	}
	e := ingest.Encoded{
		Document: ingest.Document{Path: path, Title: "Pumps", Text: "# Pumps\n\n", Type: "text/markdown", Charset: "utf-8", Hash: hash, Bytes: 73},
		Chunks:   chunks,
	}
	for i := range chunks {
		c := &e.Chunks[i]
		c.Tokens = embedder.CountPassage(c.EmbedText())
		e.Document.Text += c.Text + "\n\n"
		e.Vectors = append(e.Vectors, hashWords(c.EmbedText()))
		var sentences [][]float32
		for _, s := range c.Sentences {
			sentences = append(sentences, hashWords(c.Text[s.Start:s.End]))
		}
		e.Sentences = append(e.Sentences, sentences)
	}
	return e
}

// suite makes the calls with the arguments that do not matter filled in.
type suite struct {
	*testing.T
	store ingest.Store
}

func (s suite) put(collection, path, hash, recipe string, changed bool) {
	s.Helper()
	got, err := s.store.Put(s.Context(), collection, "fake", recipe, NewEncoded(path, hash))
	if err != nil || got != changed {
		s.Fatalf("Put(%s, %s, %s, %s) = %v, %v; want %v", collection, path, hash, recipe, got, err, changed)
	}
}

func (s suite) delete(collection string, n int, paths ...string) {
	s.Helper()
	got, err := s.store.Delete(s.Context(), collection, paths)
	if err != nil || got != n {
		s.Fatalf("Delete(%s, %q) = %d, %v; want %d", collection, paths, got, err, n)
	}
}

func (s suite) states(collection string, want map[string]ingest.State) {
	s.Helper()
	got, err := s.store.States(s.Context(), collection)
	if err != nil {
		s.Fatal(err)
	}
	if len(got) == 0 && len(want) == 0 {
		return
	}
	if d := cmp.Diff(want, got); d != "" {
		s.Fatalf("states of %s:\n%s", collection, d)
	}
}

func testStates(t *testing.T, store ingest.Store) {
	s := suite{t, store}
	s.states("c", nil)
	s.delete("c", 0, "a.md")
	s.put("c", "docs/a.md", "h1", "r1", true)
	s.put("c", "docs/ㄱ 나.md", "h2", "r1", true)
	s.states("c", map[string]ingest.State{"docs/a.md": {Hash: "h1", Recipe: "r1"}, "docs/ㄱ 나.md": {Hash: "h2", Recipe: "r1"}})
	s.delete("c", 1, "docs/a.md", "docs/unknown.md")
	s.delete("c", 0)
	s.states("c", map[string]ingest.State{"docs/ㄱ 나.md": {Hash: "h2", Recipe: "r1"}})
	s.put("c", "docs/a.md", "h1", "r1", true)
}

func testReplace(t *testing.T, store ingest.Store) {
	s := suite{t, store}
	s.put("c", "a.md", "h1", "r1", true)
	s.put("c", "a.md", "h1", "r1", false)
	s.put("c", "a.md", "h2", "r1", true)
	s.put("c", "a.md", "h2", "r2", true)
	s.put("c", "a.md", "h2", "r2", false)
	s.states("c", map[string]ingest.State{"a.md": {Hash: "h2", Recipe: "r2"}})
}

func testCollections(t *testing.T, store ingest.Store) {
	s := suite{t, store}
	s.put("one", "a.md", "h1", "r", true)
	s.put("two", "a.md", "h2", "r", true)
	s.delete("one", 1, "a.md")
	s.states("one", nil)
	s.states("two", map[string]ingest.State{"a.md": {Hash: "h2", Recipe: "r"}})
}

// testConcurrentPuts has several runs store the same documents at once.
func testConcurrentPuts(t *testing.T, store ingest.Store) {
	const runs, documents = 6, 5
	var mu sync.Mutex
	changes := make(map[string]int)
	var wg sync.WaitGroup
	for range runs {
		wg.Go(func() {
			for i := range documents {
				path := fmt.Sprintf("same/s%d.md", i)
				changed, err := store.Put(t.Context(), "c", "fake", "r", NewEncoded(path, "h"))
				if err != nil {
					t.Errorf("put %s: %v", path, err)
				}
				if changed {
					mu.Lock()
					changes[path]++
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for i := range documents {
		if path := fmt.Sprintf("same/s%d.md", i); changes[path] != 1 {
			t.Errorf("%s was stored %d times", path, changes[path])
		}
	}
}

func testCancelled(t *testing.T, store ingest.Store) {
	s := suite{t, store}
	s.put("c", "a.md", "h1", "r", true)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Put(ctx, "c", "fake", "r", NewEncoded("a.md", "h2")); err == nil {
		t.Error("a put with a cancelled context succeeded")
	}
	s.states("c", map[string]ingest.State{"a.md": {Hash: "h1", Recipe: "r"}})
}
