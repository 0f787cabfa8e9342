package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/mattn/go-runewidth"
	"golang.org/x/term"

	"ragd/ingest"
)

// redraw is how often a bar is drawn again.
const redraw = 100 * time.Millisecond

// isTerminal reports whether a person is looking.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// line is one line of a terminal that is drawn again and again. On anything but
// a terminal only what is final is written.
type line struct {
	w    io.Writer
	live bool
	last time.Time
}

func newLine(w io.Writer) *line { return &line{w: w, live: isTerminal(w)} }

// draw shows text unless one was shown a moment ago.
func (l *line) draw(text string) {
	if !l.live || time.Since(l.last) < redraw {
		return
	}
	l.last = time.Now()
	fmt.Fprintf(l.w, "\r\033[K%s", l.fit(text))
}

// fit cuts text to the width of the terminal: a line that wraps could not be
// drawn over.
func (l *line) fit(text string) string {
	f, ok := l.w.(*os.File)
	if !ok {
		return text
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil || width < 2 {
		return text
	}
	return runewidth.Truncate(text, width-1, "…")
}

// done replaces what was drawn by text and ends the line.
func (l *line) done(text string) {
	if l.live {
		fmt.Fprint(l.w, "\r\033[K")
	}
	if text != "" {
		fmt.Fprintln(l.w, text)
	}
	l.last = time.Time{}
}

const barWidth = 24

func bar(done, total int64) string {
	full := 0
	if total > 0 {
		full = int(min(done, total) * barWidth / total)
	}
	b := make([]rune, barWidth)
	for i := range b {
		b[i] = '░'
		if i < full {
			b[i] = '█'
		}
	}
	return string(b)
}

// downloads shows the stages of fetching models.
type downloads struct {
	line  *line
	stage string
}

func newDownloads(w io.Writer) *downloads { return &downloads{line: newLine(w)} }

func (d *downloads) progress(done, total int64, stage string) {
	if stage != d.stage {
		d.stage = stage
		d.line.done("")
		if !d.line.live {
			fmt.Fprintln(d.line.w, stage)
		}
	}
	if total > 0 {
		d.line.draw(fmt.Sprintf("%s %s %s of %s", stage, bar(done, total), size(done), size(total)))
		return
	}
	d.line.draw(fmt.Sprintf("%s %s", stage, size(done)))
}

func (d *downloads) end() { d.line.done("") }

// size is a number of bytes for a person.
func size(n int64) string {
	switch {
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	case n >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	case n >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(n)/(1<<10))
	}
	return fmt.Sprintf("%d B", n)
}

// ingestLine is the progress of an ingest: documents, chunks, tokens a second
// and the time left, which is guessed from the bytes.
func ingestLine(p ingest.Progress) string {
	rate, left := 0.0, "…"
	if s := p.Elapsed.Seconds(); s > 0 {
		rate = float64(p.Tokens) / s
		if p.Bytes > 0 && p.TotalBytes >= p.Bytes {
			rest := time.Duration(s * float64(p.TotalBytes-p.Bytes) / float64(p.Bytes) * float64(time.Second))
			left = rest.Round(time.Second).String()
		}
	}
	return fmt.Sprintf("%s %d/%d documents, %d chunks, %.0f tokens/s, %s left", bar(p.Bytes, p.TotalBytes), p.Documents, p.Total, p.Chunks, rate, left)
}
