package ingest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"ragd/ingest"
	"ragd/ingest/chunk"
	"ragd/ingest/ingesttest"
	"ragd/ingest/source"
)

// road is a pipeline over a folder with everything behind it in reach.
type road struct {
	*testing.T
	dir      string
	embedder *ingesttest.FakeEmbedder
	store    *ingesttest.MemoryStore
	config   ingest.Config
	source   ingest.Source
	observe  ingest.Observer
}

func newRoad(t *testing.T, files map[string]string) *road {
	t.Helper()
	s, err := source.New(source.DefaultConfig())
	if err != nil {
		t.Fatal(err)
	}
	r := &road{T: t, dir: filepath.Join(t.TempDir(), "docs"), embedder: &ingesttest.FakeEmbedder{}, store: &ingesttest.MemoryStore{}, config: ingest.DefaultConfig("c"), source: s}
	r.config.WindowTokens = 60 // several windows
	r.mustMkdir("")
	for name, text := range files {
		r.write(name, text)
	}
	return r
}

func (r *road) mustMkdir(name string) {
	r.Helper()
	if err := os.MkdirAll(filepath.Join(r.dir, name), 0o755); err != nil {
		r.Fatal(err)
	}
}

func (r *road) write(name, text string) {
	r.Helper()
	r.mustMkdir(filepath.Dir(name))
	if err := os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o644); err != nil {
		r.Fatal(err)
	}
}

func (r *road) remove(name string) {
	r.Helper()
	if err := os.RemoveAll(filepath.Join(r.dir, name)); err != nil {
		r.Fatal(err)
	}
}

func (r *road) run(ctx context.Context, roots ...string) (ingest.Report, error) {
	r.Helper()
	chunker, err := chunk.New(r.embedder, chunk.Config{Target: 64, Max: r.embedder.MaxTokens(), Overlap: 10})
	if err != nil {
		r.Fatal(err)
	}
	p, err := ingest.New(r.source, chunker, r.embedder, r.store, r.config, r.observe)
	if err != nil {
		r.Fatal(err)
	}
	if len(roots) == 0 {
		roots = []string{r.dir}
	}
	report, err := p.Run(ctx, roots)
	if sum := report.Indexed + report.Unchanged + report.Skipped + report.Failed + report.Remaining; sum != report.Found {
		r.Errorf("found %d, but the parts give %d", report.Found, sum)
	}
	return report, err
}

// expect runs and compares "indexed unchanged skipped failed remaining pruned".
func (r *road) expect(want string, roots ...string) ingest.Report {
	r.Helper()
	report, err := r.run(r.Context(), roots...)
	if err != nil {
		r.Fatal(err)
	}
	got := fmt.Sprint(report.Indexed, report.Unchanged, report.Skipped, report.Failed, report.Remaining, report.Pruned)
	if got != want {
		r.Fatalf("indexed, unchanged, skipped, failed, remaining, pruned = %s, want %s\n%+v", got, want, report.Files)
	}
	return report
}

func (r *road) stored(path string) ingesttest.Stored {
	r.Helper()
	d, ok := r.store.Documents("c")[path]
	if !ok {
		r.Fatalf("%s is not stored", path)
	}
	return d
}

func shelves(n int) map[string]string {
	files := make(map[string]string)
	for i := range n {
		files[fmt.Sprintf("s%02d.txt", i)] = fmt.Sprintf("Shelf %d holds the item with code SH-%03d. It is counted twice a year.\n", i, i)
	}
	return files
}

func TestRunIndexesOnceAndSkipsUnchanged(t *testing.T) {
	r := newRoad(t, shelves(20))
	r.write("guide/pumps.md", "# Pumps\n\nThe pump is blue and runs at night.\n\n## Seals\n\nSeals are changed each spring without fail.\n")
	first := r.expect("21 0 0 0 0 0")
	if first.Chunks != 22 || first.Tokens == 0 {
		t.Errorf("%d chunks, %d tokens", first.Chunks, first.Tokens)
	}
	calls := r.embedder.Calls.Load()
	r.expect("0 21 0 0 0 0")
	if r.embedder.Calls.Load() != calls {
		t.Error("unchanged files were embedded again")
	}
	d := r.stored("docs/guide/pumps.md")
	if d.Document.Title != "Pumps" || len(d.Vectors) != 2 || len(d.Sentences) != 2 || d.Vectors[1] == nil || d.Sentences[1][0] == nil {
		t.Errorf("stored %+v", d)
	}
	r.config.Sentences = ingest.SentencesOff
	r.expect("21 0 0 0 0 0") // another recipe
	if r.stored("docs/s01.txt").Sentences != nil {
		t.Error("sentence vectors though they are off")
	}
}

func TestRunReplacesChangedAndPrunesGone(t *testing.T) {
	r := newRoad(t, map[string]string{"lobby.md": "The fish is called CORAL.", "old.md": "Gone soon.", "sub/a.md": "Stays here."})
	r.store.Put(t.Context(), "c", "m", "r", ingesttest.NewEncoded("other/x.md", "h"))
	r.store.Put(t.Context(), "c", "m", "r", ingesttest.NewEncoded("docs-two/x.md", "h"))
	r.expect("3 0 0 0 0 0")
	r.write("lobby.md", "The fish is called MARBLE.")
	r.write("sub/a.md", "  \n")
	r.remove("old.md")
	r.expect("1 0 1 0 0 0") // without Prune nothing is deleted
	if len(r.store.Documents("c")) != 5 {
		t.Error("a document was deleted unasked")
	}
	r.config.Prune = true
	report := r.expect("0 1 1 0 0 2")
	if last := report.Files[len(report.Files)-1]; last.Path != "docs/sub/a.md" || last.Status != ingest.Pruned {
		t.Errorf("last result %+v", last)
	}
	if got := r.stored("docs/lobby.md").Chunks[0].Text; got != "The fish is called MARBLE." {
		t.Errorf("stored %q", got)
	}
	r.stored("other/x.md")
	r.stored("docs-two/x.md")
	r.expect("0 0 0 1 0 0", filepath.Join(r.dir, "nothing")) // a missing root prunes nothing
	r.expect("0 1 0 0 0 0", filepath.Join(r.dir, "../docs/lobby.md")+"/../lobby.md")
}

func TestRunNamesTheBadAndGoesOn(t *testing.T) {
	r := newRoad(t, shelves(3))
	r.write("bad.md", "The embedder chokes on POISON here.")
	r.write("long.md", "# A\n\nFine.\n\n# B\n\nPOISON again.\n")
	r.write("photo.png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00")
	r.write("empty.md", "")
	r.write("headings.md", "# One\n\n## Two\n")
	r.write("noise.txt", string([]byte{0x81, 0x20, 0xff, 0x8d, 0x90, 0x9d, 0x81, 0xfe, 0xff}))
	r.embedder.Refuse = "POISON"
	report := r.expect("3 0 3 3 0 0")
	for _, f := range report.Files {
		if f.Status != ingest.Indexed && f.Reason == "" {
			t.Errorf("%s is %s without a reason", f.Path, f.Status)
		}
	}
	if _, ok := r.store.Documents("c")["docs/long.md"]; ok {
		t.Error("a document was stored without one of its chunks")
	}
}

func TestRunStoreErrors(t *testing.T) {
	r := newRoad(t, shelves(12))
	r.store.OnPut = func(path string) error {
		if path == "docs/s03.txt" {
			return errors.New("row refused")
		}
		return nil
	}
	r.expect("11 0 0 1 0 0")
	r = newRoad(t, shelves(12))
	var puts int
	r.config.Writers = 1
	r.store.OnPut = func(string) error {
		if puts++; puts > 4 {
			return fmt.Errorf("dial: %w", ingest.ErrUnavailable)
		}
		return nil
	}
	report, err := r.run(t.Context())
	if !errors.Is(err, ingest.ErrUnavailable) || report.Indexed != 4 || report.Remaining != 8 || report.Complete() || report.Interrupted {
		t.Errorf("%v, %+v", err, report)
	}
}

// TestRunInterrupted: the document that is being stored is finished, the others
// are told to remain, and the next run goes on from there.
func TestRunInterrupted(t *testing.T) {
	r := newRoad(t, shelves(20))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	r.config.Writers = 1
	var puts int
	r.store.OnPut = func(string) error {
		if puts++; puts == 6 {
			cancel()
		}
		return nil
	}
	report, err := r.run(ctx)
	if !errors.Is(err, context.Canceled) || !report.Interrupted || report.Indexed != 6 || report.Remaining != 14 {
		t.Errorf("%v, %+v", err, report)
	}
	if n := len(r.store.Documents("c")); n != report.Indexed {
		t.Errorf("%d stored, %d reported", n, report.Indexed)
	}
	r.store.OnPut = nil
	r.expect("14 6 0 0 0 0")
}

// TestRunsAtOnce holds OB-17: several runs over one folder.
func TestRunsAtOnce(t *testing.T) {
	r := newRoad(t, shelves(20))
	r.write("s03-copy.txt", shelves(4)["s03.txt"])
	reports := make([]ingest.Report, 4)
	var wg sync.WaitGroup
	for i := range reports {
		wg.Go(func() {
			var err error
			if reports[i], err = r.run(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	indexed := 0
	for _, report := range reports {
		indexed += report.Indexed
		if report.Failed != 0 || !report.Complete() {
			t.Errorf("%+v", report)
		}
	}
	if n := len(r.store.Documents("c")); indexed != 21 || n != 21 {
		t.Errorf("%d indexed in all, %d stored, want 21", indexed, n)
	}
}

// slowSource is a parser that panics on one file and hangs on another.
type slowSource struct{ ingest.Source }

func (s slowSource) Extract(ctx context.Context, raw ingest.Raw) (ingest.Document, error) {
	switch filepath.Base(raw.File.Path) {
	case "panic.txt":
		var none []int
		_ = none[len(raw.Bytes)]
	case "hang.txt":
		time.Sleep(300 * time.Millisecond)
	}
	return s.Source.Extract(ctx, raw)
}

func TestRunGuardsParsers(t *testing.T) {
	r := newRoad(t, map[string]string{"a.txt": "Good one.", "hang.txt": "Never read.", "panic.txt": "Boom.", "z.txt": "Good too."})
	r.source = slowSource{r.source}
	r.config.ParseTimeout = 50 * time.Millisecond
	report := r.expect("2 0 0 2 0 0")
	if !strings.Contains(report.Files[1].Reason, "took too long") || !strings.Contains(report.Files[2].Reason, "parser failed") {
		t.Errorf("%+v", report.Files)
	}
}

// wrongCounts gives other token counts than it was measured with.
type wrongCounts struct{ *ingesttest.FakeEmbedder }

func (w wrongCounts) EmbedPassages(ctx context.Context, texts []string) ([]ingest.Embedding, error) {
	out, err := w.FakeEmbedder.EmbedPassages(ctx, texts)
	for i := range out {
		out[i].Tokens++
	}
	return out, err
}

func TestRunHoldsTheTokenLedger(t *testing.T) {
	r := newRoad(t, map[string]string{"a.txt": "Counted wrongly."})
	chunker, err := chunk.New(r.embedder, chunk.DefaultConfig(512))
	if err != nil {
		t.Fatal(err)
	}
	p, err := ingest.New(r.source, chunker, wrongCounts{r.embedder}, r.store, r.config, nil)
	if err != nil {
		t.Fatal(err)
	}
	report, err := p.Run(t.Context(), []string{r.dir})
	if err != nil || report.Failed != 1 || !strings.Contains(report.Files[0].Reason, "tokens") {
		t.Errorf("%v, %+v", err, report)
	}
}

func TestProgressReachesTheEnd(t *testing.T) {
	r := newRoad(t, shelves(9))
	var last ingest.Progress
	r.observe = func(p ingest.Progress) {
		if p.Documents < last.Documents || p.Tokens < last.Tokens {
			t.Errorf("progress went back from %+v to %+v", last, p)
		}
		last = p
	}
	report := r.expect("9 0 0 0 0 0")
	if last.Documents != 9 || last.Total != 9 || last.Bytes != last.TotalBytes || last.Chunks != report.Chunks || last.Tokens != report.Tokens {
		t.Errorf("last progress %+v", last)
	}
}

func TestPipelineConfigIsChecked(t *testing.T) {
	for name, change := range map[string]func(*ingest.Config){
		"collection": func(c *ingest.Config) { c.Collection = "" },
		"sentences":  func(c *ingest.Config) { c.Sentences = "pooled" },
		"timeout":    func(c *ingest.Config) { c.ParseTimeout = 0 },
		"writers":    func(c *ingest.Config) { c.Writers = 0 },
		"reuse":      func(c *ingest.Config) { c.ReuseBytes = -1 },
	} {
		c := ingest.DefaultConfig("c")
		change(&c)
		if _, err := ingest.New(nil, nil, nil, nil, c, nil); err == nil {
			t.Errorf("a wrong %s was accepted", name)
		}
	}
}

// TestEqualTextsAreEmbeddedOnce holds what OB-09's line of 8 MB needs: texts that
// come again, in a document or in another, take the vector that is there.
func TestEqualTextsAreEmbeddedOnce(t *testing.T) {
	const footer = "This page may be copied under the terms of the harbour licence of 1921."
	files := map[string]string{"line.txt": strings.Repeat("k", 20000) + " LAST-WORD-HERON\n"}
	for i := range 30 {
		files[fmt.Sprintf("page%02d.md", i)] = fmt.Sprintf("# Page %d\n\nShip number %d is moored here. %s\n\n%s\n", i, i, footer, footer)
	}
	with := newRoad(t, files)
	one := with.expect("31 0 0 0 0 0")
	alone := newRoad(t, files)
	alone.config.ReuseBytes = 0 // within a window only
	alone.config.WindowTokens = 1
	all := alone.expect("31 0 0 0 0 0")

	asked := with.embedder.Texts.Load()
	if asked+int64(one.Repeats) != alone.embedder.Texts.Load()+int64(all.Repeats) {
		t.Errorf("%d texts embedded and %d repeats; without memory %d and %d", asked, one.Repeats, alone.embedder.Texts.Load(), all.Repeats)
	}
	// Two texts of each page are its own: the chunk and the first sentence.
	if line := len(with.stored("docs/line.txt").Chunks); line < 50 || asked > 2*30+1+8 {
		t.Errorf("%d texts embedded for 30 pages and %d pieces of one line", asked, line)
	}
	if one.Tokens >= all.Tokens {
		t.Errorf("%d tokens given to the embedder, %d without memory", one.Tokens, all.Tokens)
	}
	sameVectors(t, with, alone)
}

// sameVectors: what is stored does not depend on what was reused.
func sameVectors(t *testing.T, a, b *road) {
	t.Helper()
	for path, d := range a.store.Documents("c") {
		other := b.stored(path)
		if !reflect.DeepEqual(d.Vectors, other.Vectors) || !reflect.DeepEqual(d.Sentences, other.Sentences) {
			t.Errorf("%s has other vectors", path)
		}
		for i, v := range d.Vectors {
			if want, err := a.embedder.EmbedPassages(t.Context(), []string{d.Chunks[i].EmbedText()}); err != nil || !slices.Equal(v, want[0].Vector) {
				t.Errorf("%s: chunk %d has the vector of another text", path, i)
			}
		}
	}
}

// A text that cannot be embedded fails every document it stands in, and no other.
func TestRepeatedTextFailsAllItsDocuments(t *testing.T) {
	r := newRoad(t, map[string]string{
		"a.txt": "POISON in a footer.", "b.txt": "POISON in a footer.", "c.txt": "Nothing wrong here.", "d.txt": "Nothing wrong here.",
	})
	r.embedder.Refuse = "POISON"
	r.expect("2 0 0 2 0 0")
}
