package main

import (
	"strings"
	"testing"
	"time"

	"github.com/mattn/go-runewidth"

	"ragd/ingest"
	"ragd/internal/answer"
	"ragd/internal/modelstore"
	"ragd/prompt/budget"
)

// TestTableCountsCells: Korean takes two cells a syllable, so columns stay aligned.
func TestTableCountsCells(t *testing.T) {
	var b strings.Builder
	table := newTable(&b, 1)
	table.row("문서", "12", "끝")
	table.row("report", "7", "end")
	table.rule()
	table.row("합계 sum", "190", "")
	table.print()
	lines := strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
	if len(lines) != 4 {
		t.Fatalf("%q", b.String())
	}
	for _, c := range []struct{ line, until string }{{lines[0], "끝"}, {lines[1], "end"}} {
		if w := runewidth.StringWidth(c.line[:strings.Index(c.line, c.until)]); w != 2+8+2+3+2 {
			t.Errorf("%q starts its last column at %d", c.line, w)
		}
	}
	if !strings.HasSuffix(lines[3], "190") || strings.HasSuffix(lines[3], " ") {
		t.Errorf("%q", lines[3])
	}
}

func TestTokensTableAddsUp(t *testing.T) {
	var b strings.Builder
	printTokens(&b, answer.Usage{
		InputTokens: 60, OutputTokens: 7, CachedTokens: 16,
		Ledger: budget.Ledger{
			Template: 10, Question: 20, Evidence: []budget.Item{{ChunkID: 1, Tokens: 10}, {ChunkID: 2, Tokens: 20}},
			Dropped: []budget.Dropped{{ChunkID: 3, Tokens: 4, Reason: budget.MaxChunks}}, AnswerReserved: 256, Window: 8192,
		},
	})
	for _, want := range []string{"evidence, chunks: 2  30", "input", "60", "16 from the prefix cache", "1 candidates dropped"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
}

func TestSizes(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 1023: "1023 B", 1536: "1.5 KiB", 5 << 20: "5.0 MiB", 3 << 30: "3.0 GiB"} {
		if got := size(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestBar(t *testing.T) {
	for _, c := range []struct {
		done, total int64
		full        int
	}{{0, 10, 0}, {5, 10, barWidth / 2}, {10, 10, barWidth}, {20, 10, barWidth}, {0, 0, 0}} {
		if got := strings.Count(bar(c.done, c.total), "█"); got != c.full || len([]rune(bar(c.done, c.total))) != barWidth {
			t.Errorf("%d of %d: %d cells", c.done, c.total, got)
		}
	}
}

func TestIngestLine(t *testing.T) {
	line := ingestLine(ingest.Progress{Documents: 3, Total: 12, Bytes: 25, TotalBytes: 100, Chunks: 9, Tokens: 5000, Elapsed: 10 * time.Second})
	for _, want := range []string{"3/12 documents", "9 chunks", "500 tokens/s", "30s left"} {
		if !strings.Contains(line, want) {
			t.Errorf("%q has no %q", line, want)
		}
	}
	if line := ingestLine(ingest.Progress{}); !strings.Contains(line, "… left") {
		t.Errorf("at the start: %q", line)
	}
}

// TestProgressOnAPipe: bars are for terminals; a pipe gets each stage once.
func TestProgressOnAPipe(t *testing.T) {
	var b strings.Builder
	d := newDownloads(&b)
	for _, stage := range []string{"downloading x", "downloading x", "unpacking x"} {
		d.progress(1, 2, stage)
	}
	d.end()
	if got := b.String(); got != "downloading x\nunpacking x\n" {
		t.Errorf("%q", got)
	}
}

func TestModelRows(t *testing.T) {
	rows := modelRows(
		[]modelstore.Item{{Name: "a", Use: "answers", Size: 5}, {Name: "b"}},
		[]modelstore.Installed{{Name: "a", Path: "/a.gguf", Bytes: 6}, {Name: "hf:x/y/z.gguf", Path: "/z.gguf", Bytes: 7}},
	)
	if len(rows) != 3 || !rows[0].Here || rows[0].Bytes != 6 || rows[1].Here || rows[2].Name != "hf:x/y/z.gguf" || !rows[2].Here {
		t.Errorf("%+v", rows)
	}
}
