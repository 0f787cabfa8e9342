package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/mattn/go-runewidth"

	"ragd/internal/answer"
)

// table prints rows in columns; Korean text counts two cells a syllable. The
// last column is not padded, columns named in right are flush right.
type table struct {
	w      io.Writer
	rows   [][]string
	right  map[int]bool
	styles map[int]string // of rows
}

func newTable(w io.Writer, right ...int) *table {
	t := &table{w: w, right: map[int]bool{}, styles: map[int]string{}}
	for _, c := range right {
		t.right[c] = true
	}
	return t
}

func (t *table) row(cells ...string) {
	row := make([]string, len(cells))
	for i, c := range cells {
		row[i] = shown(c)
	}
	t.rows = append(t.rows, row)
}

// head is a row that names the columns.
func (t *table) head(cells ...string) { t.inStyle(bold, cells...) }

func (t *table) inStyle(style string, cells ...string) {
	t.styles[len(t.rows)] = style
	t.row(cells...)
}

// rule puts a line under what came before.
func (t *table) rule() { t.rows = append(t.rows, nil) }

func (t *table) print() {
	var widths []int
	total := 0
	for _, r := range t.rows {
		for i, c := range r {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], runewidth.StringWidth(c))
		}
	}
	for _, w := range widths {
		total += w + 2
	}
	for n, r := range t.rows {
		if r == nil {
			fmt.Fprintln(t.w, "  "+styled(t.w, faint, strings.Repeat("─", max(0, total-2))))
			continue
		}
		var b strings.Builder
		for i, c := range r {
			pad := strings.Repeat(" ", widths[i]-runewidth.StringWidth(c))
			if t.right[i] {
				b.WriteString("  " + pad + c)
			} else {
				b.WriteString("  " + c + pad)
			}
		}
		fmt.Fprintln(t.w, styled(t.w, t.styles[n], strings.TrimRight(b.String(), " ")))
	}
}

// printTokens is the token ledger as a table whose sum is the input.
func printTokens(w io.Writer, u answer.Usage) {
	l := u.Ledger
	evidence := 0
	for _, e := range l.Evidence {
		evidence += e.Tokens
	}
	t := newTable(w, 1)
	t.head("tokens", "")
	for _, r := range []struct {
		name string
		n    int
	}{
		{"template", l.Template},
		{"system", l.System},
		{"history", l.History},
		{"tools", l.Tools},
		{"question", l.Question},
		{fmt.Sprintf("evidence, chunks: %d", len(l.Evidence)), evidence},
	} {
		t.row(r.name, fmt.Sprint(r.n))
	}
	t.rule()
	t.row("input", fmt.Sprint(u.InputTokens), fmt.Sprintf("of it %d from the prefix cache", u.CachedTokens))
	t.row("output", fmt.Sprint(u.OutputTokens), fmt.Sprintf("%d reserved, window %d, %d candidates dropped", l.AnswerReserved, l.Window, len(l.Dropped)))
	t.print()
}

// printTimings is the latency ledger as a table whose sum is the total.
func printTimings(w io.Writer, res *answer.Result) {
	t := newTable(w, 1, 2)
	t.head("milliseconds", "", "")
	for _, r := range res.Timings.Rows() {
		share := 0.0
		if res.Timings.Total > 0 {
			share = 100 * float64(r.Duration) / float64(res.Timings.Total)
		}
		t.row(r.Name, millis(r.Duration), fmt.Sprintf("%.1f %%", share))
	}
	t.rule()
	t.row("total", millis(res.Timings.Total), "", fmt.Sprintf("first token after %s ms", millis(res.Timings.TTFT)))
	t.print()
}

func millis(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1e3) }

// printSources lists what the answer cites.
func printSources(w io.Writer, res *answer.Result) {
	if len(res.Sources.Cited) == 0 {
		fmt.Fprintln(w, "  no citations")
		return
	}
	several := slices.ContainsFunc(res.Sources.Retrieved, func(s answer.Source) bool { return s.Collection != res.Sources.Retrieved[0].Collection })
	for _, s := range res.Sources.Cited {
		where := place(s, several)
		if len(s.Heading) > 0 {
			where += " › " + strings.Join(s.Heading, " › ")
		}
		fmt.Fprintf(w, "  %s %s\n", styled(w, cyan, fmt.Sprintf("[%d]", s.Marker)), shownLine(where))
	}
}
