package pdf

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestManyLines: the work that a page takes grows with its lines and no faster, for
// nothing ends it once PDFium has read them. Compared each with each, these took most
// of a minute. It is the processor's time: a busy machine makes no difference.
func TestManyLines(t *testing.T) {
	p := page{height: 800, lines: make([]line, 100_000)}
	for i := range p.lines {
		p.lines[i] = line{text: "x", size: 10, left: float64(i), right: float64(i) + 5, y: 800 - float64(i)}
	}
	before := worked(t)
	d := layout([]page{p})
	if took := worked(t) - before; took > 15*time.Second || strings.Count(d.Markdown, "x") != len(p.lines) {
		t.Errorf("%d lines in %v", strings.Count(d.Markdown, "x"), took)
	}
}

// worked is the time that this process has computed for.
func worked(t *testing.T) time.Duration {
	t.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		t.Fatal(err)
	}
	return time.Duration(r.Utime.Nano())
}
