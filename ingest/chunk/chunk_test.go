package chunk_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ragd/ingest"
	"ragd/ingest/chunk"
	"ragd/ingest/ingesttest"
)

func newChunker(t testing.TB, c chunk.Config) *chunk.Chunker {
	t.Helper()
	k, err := chunk.New(&ingesttest.FakeEmbedder{Limit: c.Max}, c)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func cut(t testing.TB, c chunk.Config, text string, md bool) []ingest.Chunk {
	t.Helper()
	d := &ingest.Document{Path: "test.md", Text: text, Markdown: md}
	chunks, err := newChunker(t, c).Chunk(d)
	if err != nil {
		t.Fatal(err)
	}
	check(t, c, d, chunks)
	return chunks
}

// check holds what is true of the chunks of any document.
func check(t testing.TB, c chunk.Config, d *ingest.Document, chunks []ingest.Chunk) {
	t.Helper()
	counter := &ingesttest.FakeEmbedder{}
	prevEnd, prevStart := 0, -1
	for i := range chunks {
		k := &chunks[i]
		if k.Ordinal != i {
			t.Fatalf("chunk %d has ordinal %d", i, k.Ordinal)
		}
		if n := counter.CountPassage(k.EmbedText()); n != k.Tokens || n > c.Max {
			t.Fatalf("chunk %d: %d tokens, says %d, limit %d", i, n, k.Tokens, c.Max)
		}
		if !ingest.HasText(k.Text) || !utf8.ValidString(k.Text) && utf8.ValidString(d.Text) {
			t.Fatalf("chunk %d is blank or broken: %q", i, k.Text)
		}
		if k.Start <= prevStart || k.End < k.Start || !strings.Contains(k.Text, d.Text[k.Start:k.End]) {
			t.Fatalf("chunk %d: range %d–%d after start %d, text %q", i, k.Start, k.End, prevStart, k.Text)
		}
		if c.Overlap == 0 && k.Start < prevEnd {
			t.Fatalf("chunk %d overlaps without being asked to", i)
		}
		checkGap(t, d, prevEnd, k.Start)
		checkSentences(t, k)
		prevStart, prevEnd = k.Start, k.End
	}
	checkGap(t, d, prevEnd, len(d.Text))
}

// checkGap holds that nothing but headings and blank lines lies between chunks.
func checkGap(t testing.TB, d *ingest.Document, from, to int) {
	t.Helper()
	if from >= to || !ingest.HasText(d.Text[from:to]) {
		return
	}
	if d.Markdown && len(cutHeadings(d.Text[from:to])) == 0 {
		return
	}
	t.Fatalf("lost between %d and %d: %q", from, to, d.Text[from:to])
}

// cutHeadings returns the lines that are no headings (one # is enough here, and
// an underline takes the paragraph above with it).
func cutHeadings(s string) (rest []string) {
	for line := range strings.Lines(s) {
		text := strings.TrimSpace(line)
		switch {
		case text == "" || strings.HasPrefix(text, "#"):
		case strings.Trim(text, "=") == "" || strings.Trim(text, "-") == "":
			rest = nil
		default:
			if ingest.HasText(text) {
				rest = append(rest, text)
			}
		}
	}
	return rest
}

func checkSentences(t testing.TB, k *ingest.Chunk) {
	t.Helper()
	if len(k.Sentences) == 0 {
		t.Fatalf("chunk without sentences: %q", k.Text)
	}
	end := 0
	for _, s := range k.Sentences {
		if s.Start < end || s.End <= s.Start || s.End > len(k.Text) || !ingest.HasText(k.Text[s.Start:s.End]) {
			t.Fatalf("sentence %+v after %d in %q", s, end, k.Text)
		}
		if ingest.HasText(k.Text[end:s.Start]) {
			t.Fatalf("sentence lost: %q", k.Text[end:s.Start])
		}
		end = s.End
	}
	if ingest.HasText(k.Text[end:]) {
		t.Fatalf("last sentence lost: %q", k.Text[end:])
	}
}

var small = chunk.Config{Target: 40, Max: 60}

func TestHeadings(t *testing.T) {
	text := "# Pumps\n\nStart here.\n\n```sh\n# no heading\nls\n## none\n```\n\n## Valves\n\n~~~\n# no\n```\n# none\n~~~\n\nGate\n====\n\n````\n```\n# inner\n```\n````\n\n### Deep\n\n   ```\n   # three spaces\n   ```\n\n## Last\n\n```\n# open\nrelay R-12\n"
	var got []string
	for _, c := range cut(t, chunk.Config{Target: 256, Max: 512}, text, true) {
		got = append(got, strings.Join(c.Heading, " > "))
	}
	want := []string{"Pumps", "Pumps > Valves", "Gate", "Gate > Deep", "Gate > Last"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestEmptySections(t *testing.T) {
	chunks := cut(t, small, "# A\n\n## B\n\n### C\n\n\n## D\n\nThe lamp is green.\n\n## E\n", true)
	if len(chunks) != 1 || strings.Join(chunks[0].Heading, "/") != "A/D" || chunks[0].Text != "The lamp is green." {
		t.Errorf("got %+v", chunks)
	}
	for _, blank := range []string{"", "\n\n", "# Only\n## Headings\n", "---\n\n***\n", "\u200b \u00a0\u3164\n", "```\n```\n"} {
		if chunks := cut(t, small, blank, true); len(chunks) != 0 {
			t.Errorf("%q gives %+v", blank, chunks)
		}
	}
}

func TestAtomsStayWhole(t *testing.T) {
	item := "- the belt of line %s is checked each morning before the first shift begins\n"
	text := "Rules:\n\n" + strings.ReplaceAll(item, "%s", "one") + strings.ReplaceAll(item, "%s", "two") + strings.ReplaceAll(item, "%s", "three")
	for _, c := range cut(t, small, text, true) {
		if !strings.HasPrefix(c.Text, "- the") && !strings.HasPrefix(c.Text, "Rules") || !strings.HasSuffix(c.Text, "begins") {
			t.Errorf("an item was cut: %q", c.Text)
		}
	}
}

func TestLongFenceIsReopened(t *testing.T) {
	var b strings.Builder
	b.WriteString("Before.\n\n~~~go title=x\n")
	for range 30 {
		b.WriteString("value := compute(left, right)\n")
	}
	b.WriteString("~~~\n\nAfter the block.\n")
	var pieces int
	for _, c := range cut(t, small, b.String(), true) {
		if !strings.Contains(c.Text, "compute") {
			continue
		}
		pieces++
		if !strings.HasPrefix(c.Text, "~~~go title=x\n") || !strings.HasSuffix(c.Text, "\n~~~") || strings.Count(c.Text, "~~~") != 2 {
			t.Errorf("piece %d is no fence: %q", pieces, c.Text)
		}
	}
	if pieces < 5 {
		t.Errorf("%d pieces", pieces)
	}
}

func TestFenceUpToMaxStaysWhole(t *testing.T) {
	fence := "```\n" + strings.Repeat("a b c d e\n", 9) + "```" // over Target, under Max
	chunks := cut(t, small, "Intro text.\n\n"+fence+"\n\nEnd text.\n", true)
	if len(chunks) != 3 || chunks[1].Text != fence {
		t.Errorf("got %+v", chunks)
	}
}

func TestFenceInListIsReopened(t *testing.T) {
	text := "- Step one:\n\n  ```sh\n" + strings.Repeat("  make install target\n", 40) + "  ```\n\n- Step two.\n"
	for _, c := range cut(t, small, text, true) {
		if n := strings.Count(c.Text, "```"); strings.Contains(c.Text, "make") && n != 2 {
			t.Errorf("%d marks in %q", n, c.Text)
		}
	}
}

func TestTableKeepsHeader(t *testing.T) {
	head := "| part | shelf |\n|------|-------|\n"
	text := "Parts:\n\n" + head + strings.Repeat("| bolt M8 | 12 |\n", 40) + "\nEnd.\n"
	n := 0
	for _, c := range cut(t, chunk.Config{Target: 64, Max: 80}, text, true) {
		if strings.Contains(c.Text, "bolt") {
			n++
			if !strings.HasPrefix(c.Text, head) || strings.Count(c.Text, "part") != 1 {
				t.Errorf("piece without header: %q", c.Text)
			}
		}
	}
	if n < 3 {
		t.Errorf("%d pieces", n)
	}
}

func TestLongHeadingIsShortened(t *testing.T) {
	long := strings.Repeat("very ", 40) + "long"
	text := "# " + long + "\n\n## Inner\n\nBody one.\n\n# " + long + "\n\nBody two.\n"
	chunks := cut(t, small, text, true)
	if len(chunks) != 2 {
		t.Fatalf("got %d chunks", len(chunks))
	}
	if d := cmp.Diff([]string{"Inner"}, chunks[0].Heading); d != "" {
		t.Error(d)
	}
	if h := chunks[1].Heading; len(h) != 1 || !strings.HasPrefix(h[0], "very very") || !strings.HasSuffix(h[0], "…") {
		t.Errorf("heading %q", h)
	}
}

func TestParagraphUnderlinedByAccidentIsText(t *testing.T) {
	para := strings.Repeat("The gauge of line two is read twice. ", 20)
	var got strings.Builder
	for _, c := range cut(t, small, para+"\n---\nAfter it.\n", true) {
		got.WriteString(c.Text + " ")
		if len(c.Heading) > 0 {
			t.Errorf("heading %q", c.Heading)
		}
	}
	if n := strings.Count(got.String(), "gauge"); n != 20 || !strings.Contains(got.String(), "After it.") {
		t.Errorf("%d sentences of 20 in %q", n, got.String())
	}
}

func TestOverlapIsWholeSentences(t *testing.T) {
	var b strings.Builder
	for i := range 30 {
		b.WriteString("Sentence " + strings.Repeat("x", i%5+1) + " tells of pumps. ")
	}
	c := chunk.Config{Target: 64, Max: 64, Overlap: 20}
	chunks := cut(t, c, b.String(), false)
	overlaps := 0
	for i := 1; i < len(chunks); i++ {
		if chunks[i].Start < chunks[i-1].End {
			overlaps++
		}
		if !strings.HasPrefix(chunks[i].Text, "Sentence") {
			t.Errorf("starts inside a sentence: %q", chunks[i].Text)
		}
	}
	if overlaps != len(chunks)-1 {
		t.Errorf("%d overlaps in %d chunks", overlaps, len(chunks))
	}
}

func TestOverlapNeverStartsInsideAFence(t *testing.T) {
	long := strings.Repeat("This sentence has a few words. ", 12)
	for name, block := range map[string]string{
		"fence": "```\nalpha = 1\nbeta = 2\n```\n", "table": "| a | b |\n|---|---|\n| 1 | 2 |\n", "list": "- step\n\n  ```\n  gamma\n  ```\n",
	} {
		repeated := 0
		for _, c := range cut(t, chunk.Config{Target: 64, Max: 64, Overlap: 30}, "Before it.\n\n"+block+"\n"+long, true) {
			if first, _, _ := strings.Cut(c.Text, "\n"); !strings.HasPrefix(first, "Before") && !strings.HasPrefix(first, "This") && !strings.HasPrefix(first, block[:3]) {
				t.Errorf("%s: starts with %q", name, first)
			}
			if n := strings.Count(c.Text, "```"); n%2 != 0 {
				t.Errorf("%s: %d marks in %q", name, n, c.Text)
			}
			repeated += strings.Count(c.Text, "This sentence")
		}
		if repeated <= 12 {
			t.Errorf("%s: no overlap in the prose after it", name)
		}
	}
}

// TestUnbrokenText holds OB-09: no space to cut at, one early space, wide
// scripts, all sizes of overlap; every character is found again.
func TestUnbrokenText(t *testing.T) {
	texts := map[string]string{
		"latin":  "a " + strings.Repeat("k", 20000) + " END-HERON",
		"hangul": strings.Repeat("가나다라마바사", 3000) + "솔개",
		"hanzi":  strings.Repeat("翡翠鳥", 3000),
		"json":   strings.Repeat(`{"id":12,"name":"bolt"},`, 900),
		"marks":  strings.Repeat("e\u0301\u0302", 4000),
	}
	for name, text := range texts {
		for _, overlap := range []int{0, 20, 39} {
			cut(t, chunk.Config{Target: 40, Max: 40, Overlap: overlap}, text, false)
			cut(t, chunk.Config{Target: 40, Max: 60, Overlap: overlap}, text, true)
		}
		if len(cut(t, small, text, false)) < 10 {
			t.Errorf("%s: too few chunks", name)
		}
	}
}

// TestHostileMarkup holds that no markup makes a chunk too long or a run slow.
func TestHostileMarkup(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("`", 5000) + "\ncode\n", "```" + strings.Repeat("info ", 500) + "\n" + strings.Repeat("line of code\n", 200),
		strings.Repeat(">", 5000) + " x", strings.Repeat("[a]: /x\n", 2000), strings.Repeat("[", 5000), strings.Repeat("a|", 500) + "\n" + strings.Repeat("-|", 500) + "\n" + strings.Repeat("b|", 500),
		"# " + strings.Repeat("head ", 2000) + "\n\n" + strings.Repeat("## s\n\ntext\n\n", 200),
	} {
		cut(t, small, text, true)
	}
}

// byteCounter counts tokens as FakeEmbedder does and the bytes it was shown.
type byteCounter struct {
	ingesttest.FakeEmbedder
	bytes int
}

func (b *byteCounter) CountPassage(text string) int {
	b.bytes += len(text)
	return b.FakeEmbedder.CountPassage(text)
}

// TestCountingIsLinear holds that a text is shown to the tokenizer a bounded
// number of times, however long it runs without a place to cut.
func TestCountingIsLinear(t *testing.T) {
	for name, unit := range map[string]string{"letters": "k", "hangul": "가", "lines": "a line of words\n", "sentences": "One sentence here. ", "commas": ",", "spaces": " ", "digits": "1 "} {
		text := strings.Repeat(unit, 300_000/len(unit))
		for _, md := range []bool{false, true} {
			counter := &byteCounter{}
			c, err := chunk.New(counter, chunk.DefaultConfig(512))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Chunk(&ingest.Document{Text: text, Markdown: md}); err != nil {
				t.Fatal(err)
			}
			if counter.bytes > 12*len(text) {
				t.Errorf("%s: %d bytes counted for a text of %d", name, counter.bytes, len(text))
			}
		}
	}
}

func BenchmarkChunk(b *testing.B) {
	section := "## Pumps\n\n" + strings.Repeat("The pump of line two is checked before each shift begins. ", 12) + "\n\n- one item\n- another item\n\n```sh\nmake check\n```\n\n"
	d := &ingest.Document{Path: "bench.md", Text: strings.Repeat(section, 200), Markdown: true}
	c, err := chunk.New(&ingesttest.FakeEmbedder{}, chunk.DefaultConfig(512))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(d.Text)))
	for b.Loop() {
		if _, err := c.Chunk(d); err != nil {
			b.Fatal(err)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	for _, c := range []chunk.Config{
		{Target: 100, Max: 512, Overlap: 100},
		{Target: 100, Max: 512, Overlap: 101},
		{Target: 100, Max: 512, Overlap: -1},
		{Target: 600, Max: 512},
		{Target: 8, Max: 512},
		{},
	} {
		if _, err := chunk.New(&ingesttest.FakeEmbedder{}, c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
	if err := chunk.DefaultConfig(512).Validate(); err != nil {
		t.Error(err)
	}
}

// words is a generator of texts with all the structure a chunker meets.
func words() *rapid.Generator[string] {
	pieces := []string{
		"word ", "a longer sentence about pumps. ", "그 펌프는 매일 점검한다. ", "3.14 ", "e.g. this ", "\n", "\n\n", "\n\n# Head\n\n", "\n\n## 제목\n\n",
		"\n\n```go\n", "\n```\n\n", "\n\n~~~\n", "\n- item ", "\n  - nested ", "\n| a | b |\n|---|---|\n", "| 1 | 2 |\n", "\n> quote ", "無空白的文字", strings.Repeat("z", 300), "\n===\n", "e\u0301", "👩‍👧 ", "\t", "\u200b", "[x]: /y\n",
	}
	return rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 80).Draw(t, "pieces"), "")
	})
}

func TestChunksGiveTheTextBack(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		target := rapid.IntRange(32, 80).Draw(r, "target")
		c := chunk.Config{Target: target, Max: target + rapid.IntRange(0, 40).Draw(r, "spare"), Overlap: rapid.IntRange(0, target-1).Draw(r, "overlap")}
		text := words().Draw(r, "text")
		cut(t, c, text, false)
		cut(t, c, text, true)
	})
}

func FuzzChunk(f *testing.F) {
	f.Add("# A\n\ntext. More text!\n\n```\ncode\n", uint8(3))
	f.Add("| a |\n|---|\n| b |", uint8(0))
	f.Add("가나다\n\n- x\n  ```\n  y", uint8(31))
	f.Fuzz(func(t *testing.T, text string, overlap uint8) {
		text = strings.ToValidUTF8(text, "\ufffd")
		c := chunk.Config{Target: 32, Max: 34, Overlap: int(overlap % 32)}
		cut(t, c, text, false)
		d := &ingest.Document{Path: "f.md", Text: text, Markdown: true}
		if _, err := newChunker(t, c).Chunk(d); err != nil {
			t.Fatal(err)
		}
	})
}

// TestPages: a chunk stands on the page where it starts; pages without text take
// no place and are passed over.
func TestPages(t *testing.T) {
	first, second := strings.Repeat("one ", 30), strings.Repeat("two ", 30)
	text := first + "\n\n" + second
	d := &ingest.Document{Text: text, Markdown: true, Pages: []int{0, 0, len(first) + 2, len(text)}}
	if diff := cmp.Diff([]int{2, 3}, pagesOf(t, d)); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]int{0}, pagesOf(t, &ingest.Document{Text: text})); diff != "" {
		t.Errorf("without pages (-want +got):\n%s", diff)
	}
}

func pagesOf(t *testing.T, d *ingest.Document) []int {
	chunks, err := newChunker(t, chunk.Config{Target: 32, Max: 64}).Chunk(d)
	if err != nil {
		t.Fatal(err)
	}
	var pages []int
	for _, c := range chunks {
		pages = append(pages, c.Page)
	}
	return slices.Compact(pages)
}
