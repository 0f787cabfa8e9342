package pdf

import (
	"strings"
	"testing"
	"time"
)

// TestManyLines: the time that a page takes grows with its lines and no faster, for
// nothing ends it once PDFium has read them. Compared each with each, these took minutes.
func TestManyLines(t *testing.T) {
	p := page{height: 800, lines: make([]line, 300_000)}
	for i := range p.lines {
		p.lines[i] = line{text: "x", size: 10, left: float64(i), right: float64(i) + 5, y: 800 - float64(i)}
	}
	start := time.Now()
	d := layout([]page{p})
	if took := time.Since(start); took > 20*time.Second || strings.Count(d.Markdown, "x") != len(p.lines) {
		t.Errorf("%d lines in %v", strings.Count(d.Markdown, "x"), took)
	}
}
