package markdown_test

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"ragd/ingest/internal/markdown"
)

const sample = `Preface before any heading.

# Pump *house* {#pumps}

Text.

~~~sh
# not a heading
` + "```" + `
~~~~~

Valve [room](x.md)
=====

- one
  - nested
- two

| a | b |
|---|---|
| 1 | 2 |

   ` + "```" + `
   # indented fence
   ` + "```" + `

Second
words
---
Last.
` + "```" + `
# open to the end
`

func TestBlocks(t *testing.T) {
	var got []string
	for _, b := range markdown.Blocks(sample) {
		line := strings.TrimSpace(strings.SplitN(sample[b.Start:b.End], "\n", 2)[0])
		kind := []string{"p", "h", "i", "t", "f"}[b.Kind]
		if b.Kind == markdown.Heading {
			line = b.Title
		}
		got = append(got, kind+" "+line)
	}
	want := []string{
		"p Preface before any heading.", "h Pump house", "p Text.", "f ~~~sh", "h Valve room",
		"i - one", "i - two", "t | a | b |", "f ```", "h Second words", "p Last.", "f ```",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestBlocksTile(t *testing.T) {
	for _, src := range []string{sample, "", "\n\n", "# a", "#\n\n#\n", "[a]: /b\n\ntext", "> q\n> ```\n> x", "---\n***\n", "1. a\n\n\n2. b\n```\n"} {
		checkTiles(t, src)
	}
}

func checkTiles(t *testing.T, src string) {
	t.Helper()
	end := -1
	for _, b := range markdown.Blocks(src) {
		if end >= 0 && b.Start != end || b.End < b.Start {
			t.Fatalf("%q: block %+v after end %d", src, b, end)
		}
		if h := markdown.HeadingEnd(src, b); h < b.Start || h > b.End {
			t.Fatalf("%q: heading of %+v ends at %d", src, b, h)
		}
		at := b.Start
		for _, p := range b.Parts {
			if p.Start != at || p.End < p.Start || p.End > b.End {
				t.Fatalf("%q: part %+v of %+v", src, p, b)
			}
			at = p.End
		}
		if len(b.Parts) > 0 && at != b.End {
			t.Fatalf("%q: parts of %+v end at %d", src, b, at)
		}
		end = b.End
	}
	if end >= 0 && end != len(src) {
		t.Fatalf("%q: blocks end at %d of %d", src, end, len(src))
	}
}

func TestHeadingEnd(t *testing.T) {
	for src, want := range map[string]string{
		"# A\nbody":               "body",
		"## A ##\n\nbody":         "\nbody",
		"A\n===\nbody":            "body",
		"A\nB\n---\nbody":         "body",
		"#tag is text\n---\nrest": "rest",
		"#":                       "",
		"# A\n---\nrest":          "---\nrest",
	} {
		b := markdown.Blocks(src)[0]
		if got := src[markdown.HeadingEnd(src, b):]; got != want {
			t.Errorf("%q: body %q, want %q", src, got, want)
		}
	}
}

func TestPlain(t *testing.T) {
	for in, want := range map[string]string{
		"소개 { #intro }":                "소개",
		"사용법 {/*usage*/}":              "사용법",
		"Why? {/* why-it-is */}":       "Why?",
		"a set {/a/}":                  "a set {/a/}",
		"The `--prune` **flag**":       "The --prune flag",
		"![logo](a.png) Home [x][y]":   "logo Home x",
		"snake_case and 2 * 3":         "snake_case and 2 * 3",
		"<span id=a>Tag</span>  a < b": "Tag a < b",
		"set {a, b} of ~~old~~ new":    "set {a, b} of old new",
	} {
		if got := markdown.Plain(in); got != want {
			t.Errorf("Plain(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestWideTables: a table takes memory by its length, not by its columns times its rows.
func TestWideTables(t *testing.T) {
	wide := strings.Repeat("|a", 3000) + "|\n" + strings.Repeat("|-", 3000) + "|\n" + strings.Repeat("|\n", 3000)
	src := wide + "\nAfter it.\n\nText above\n| a | b |\n|---|---|\n| 1 | 2 |\n\n| no | no |\n|---|\n\n| x |\n|---|\n"
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	blocks := markdown.Blocks(src)
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; taken > 64<<20 {
		t.Errorf("%d bytes took %d", len(src), taken)
	}
	var kinds []markdown.Kind
	for _, b := range blocks {
		kinds = append(kinds, b.Kind)
	}
	want := []markdown.Kind{markdown.Table, markdown.Paragraph, markdown.Paragraph, markdown.Paragraph, markdown.Table}
	if d := cmp.Diff(want, kinds); d != "" {
		t.Errorf("blocks (-want +got):\n%s", d)
	}
}

func FuzzBlocks(f *testing.F) {
	f.Add(sample)
	f.Add("- a\n\n  ```\n  b\n")
	f.Add("|a|\n|-|\n|b|\n\n> c")
	f.Fuzz(func(t *testing.T, src string) { checkTiles(t, src) })
}

func TestBlocksOfAbsurdNesting(t *testing.T) {
	for name, src := range map[string]string{
		"quotes": strings.Repeat(">", 200_000) + " x\n\n# H\n",
		"items":  strings.Repeat("- ", 100_000) + "x\n\n# H\n",
		"lines":  strings.Repeat(strings.Repeat(" ", 300)+"- x\n", 10) + "\n# H\n",
	} {
		if got := markdown.Blocks(src); len(got) != 1 || got[0].End != len(src) {
			t.Errorf("%s: %d blocks", name, len(got))
		}
	}
	for name, src := range map[string]string{
		"rule":  strings.Repeat("-", 300) + "\n\n# H\n",
		"stars": strings.Repeat("*", 300) + "\n\n# H\n",
		"wide":  strings.Repeat("* ", 300) + "\n\n# H\n",
		"dots":  strings.Repeat(".", 300) + " 5\n\n# H\n",
		"code":  strings.Repeat(" ", 300) + "x\n\n# H\n",
		"digit": strings.Repeat("1", 300) + "\n\n# H\n",
		"items": strings.Repeat("- item\n", 300) + "\n# H\n",
		"quote": strings.Repeat("> > quote\n", 300) + "\n# H\n",
	} {
		if got := markdown.Blocks(src); got[len(got)-1].Title != "H" {
			t.Errorf("%s: last block %+v", name, got[len(got)-1])
		}
	}
}
