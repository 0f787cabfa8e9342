package pdf

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"ragd/ingest/internal/markdown"
)

// layout turns lines into Markdown: larger type becomes headings, lines of a
// paragraph are joined, running headers and footers are left out.
func layout(pages []page) Document {
	var d Document
	for i, p := range pages {
		if len(p.lines) == 0 {
			d.Blank = append(d.Blank, i+1)
		}
	}
	d.Repeated = dropRunning(pages)
	w := writer{scale: measure(pages)}
	for _, p := range pages {
		w.page(p)
	}
	d.Markdown, d.Pages = w.b.String(), w.pages
	return d
}

// scale says which type sizes are headings.
type scale struct {
	body    float64
	levels  []float64 // heading sizes, largest first
	leading float64   // usual distance of baselines over the size
	spaces  bool      // lines that end between words end with a space
}

// Type at least headingRatio times the body's is a heading, unless more than
// headingShare of the characters are set in it.
const (
	headingRatio = 1.12
	headingShare = 0.2
	headingRunes = 200
	maxLevels    = 4
	maxLeading   = 2.5 // baselines further apart are no lines of a paragraph
)

func measure(pages []page) scale {
	count := map[float64]int{}
	leadings := map[float64]int{}
	total := 0
	var s scale
	for _, p := range pages {
		for i, l := range p.lines {
			n := utf8.RuneCountInString(l.text)
			count[round(l.size)] += n
			total += n
			s.spaces = s.spaces || l.spaced
			if i > 0 && l.size > 0 {
				if by := (p.lines[i-1].y - l.y) / l.size; by > 0 && by <= maxLeading {
					leadings[math.Round(by*10)/10]++
				}
			}
		}
	}
	s.body, s.leading = most(count), cmp.Or(most(leadings), 1.2)
	for size, n := range count {
		if size >= s.body*headingRatio && float64(n) <= headingShare*float64(total) {
			s.levels = append(s.levels, size)
		}
	}
	slices.SortFunc(s.levels, func(a, b float64) int { return cmp.Compare(b, a) })
	s.levels = s.levels[:min(len(s.levels), maxLevels)]
	return s
}

// round puts sizes that differ by rounding together.
func round(size float64) float64 { return math.Round(size*2) / 2 }

// most is the key with the highest count, the smaller key on a tie.
func most(count map[float64]int) float64 {
	best, n := 0.0, 0
	for k, c := range count {
		if c > n || c == n && k < best {
			best, n = k, c
		}
	}
	return best
}

// level is 1 for the largest headings, 0 for text.
func (s scale) level(l line) int {
	if utf8.RuneCountInString(l.text) > headingRunes || !strings.ContainsFunc(l.text, unicode.IsLetter) {
		return 0
	}
	return slices.Index(s.levels, round(l.size)) + 1
}

// writer writes one page after the other.
type writer struct {
	scale
	b     strings.Builder
	pages []int
	prev  *line // the line before, when a paragraph is open
	level int   // of the open block
}

func (w *writer) page(p page) {
	start := -1
	edges := edgesOf(p.lines)
	for i := range p.lines {
		l := p.lines[i]
		at := w.join(l, edges.right(l), i == 0)
		if start < 0 {
			start = at
		}
		w.write(l)
		w.prev = &p.lines[i]
	}
	if start < 0 {
		start = w.b.Len()
	}
	w.pages = append(w.pages, start)
}

func (w *writer) write(l line) {
	text := l.text
	if w.prev == nil {
		text = escapeBlock(text)
	}
	w.b.WriteString(text)
}

// join writes what stands between the line before and l: nothing, a space, a line
// end, or the end of the block. Then w.prev is nil and the new block begins. It
// returns where what belongs to l starts.
func (w *writer) join(l line, right float64, newPage bool) int {
	level := w.scale.level(l)
	defer func() { w.level = level }()
	if w.prev != nil && w.level == level && w.goesOn(*w.prev, l, newPage) {
		w.b.WriteString(w.between(*w.prev, l, right))
		return w.b.Len()
	}
	if w.b.Len() > 0 {
		w.b.WriteString("\n\n")
	}
	w.prev = nil
	start := w.b.Len()
	if level > 0 {
		w.b.WriteString(strings.Repeat("#", level) + " ")
	}
	return start
}

// looser than the usual leading by this much, a line begins a new paragraph.
const paragraphGap = 1.35

// goesOn reports whether l belongs to the paragraph of a.
func (w *writer) goesOn(a, l line, newPage bool) bool {
	if math.Abs(a.size-l.size) > 0.1*a.size || markdown.IsItem(l.text) && !w.divided(a, l) {
		return false
	}
	if newPage {
		return w.level == 0 && !sentenceEnd.MatchString(a.text) && !startsUpper(l.text)
	}
	dy := a.y - l.y
	if w.level > 0 {
		return dy > 0 && dy <= 2*w.leading*l.size
	}
	return dy > 0 && dy <= paragraphGap*w.leading*l.size || math.Abs(dy) < 0.3*l.size
}

// between is what joins two lines of a paragraph. A line that ends well before
// the margin was ended on purpose: a row of a table, an address.
func (w *writer) between(a, l line, right float64) string {
	switch last, _ := utf8.DecodeLastRuneInString(a.text); {
	case w.level > 0:
		return " "
	case a.hyphen:
		return ""
	case a.right < right-6*a.size:
		return "\n"
	case unicode.In(last, unicode.Han, unicode.Hiragana, unicode.Katakana):
		return ""
	case w.divided(a, l):
		return ""
	}
	return " "
}

// divided reports a Hangul word that goes on from a to l: elsewhere a line that ends
// between words ends with a space. So "다. 그" is the end of a sentence, and no item.
func (w *writer) divided(a, l line) bool {
	last, _ := utf8.DecodeLastRuneInString(a.text)
	return w.spaces && !a.spaced && unicode.Is(unicode.Hangul, last) && startsHangul(l.text)
}

// edges knows how far the lines of a page reach to the right, by where they begin.
type edges struct {
	at   map[int]float64 // by the left end over edgeCell
	page float64         // of all lines
}

const (
	edgeCell  = 2.0 // points
	edgeCells = 100 // at most are looked at; lines of larger type have the page's edge
)

func edgesOf(lines []line) edges {
	e := edges{at: map[int]float64{}}
	for _, l := range lines {
		cell := int(l.left / edgeCell)
		e.at[cell] = max(e.at[cell], l.right)
		e.page = max(e.page, l.right)
	}
	return e
}

// right is the right edge of the column that l stands in: of the lines that begin about
// where it does.
func (e edges) right(l line) float64 {
	if !(4*l.size <= edgeCells*edgeCell) || !(math.Abs(l.left) < math.MaxInt32) { // not for NaN either
		return e.page
	}
	right := l.right
	for cell := int((l.left - 2*l.size) / edgeCell); cell <= int((l.left+2*l.size)/edgeCell); cell++ {
		right = max(right, e.at[cell])
	}
	return right
}

var (
	sentenceEnd = regexp.MustCompile(`[.!?。…:;]["'”’)\]]*$`)
	bulletSign  = regexp.MustCompile(`^[•▪■□○●◦‣]\s+`)
)

// escapeBlock keeps text from being read as Markdown's block marks; bullets
// become list items.
func escapeBlock(text string) string {
	if m := bulletSign.FindString(text); m != "" {
		return "- " + text[len(m):]
	}
	return markdown.EscapeBlock(text)
}

func startsUpper(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.IsUpper(r)
}

func startsHangul(s string) bool {
	r, _ := utf8.DecodeRuneInString(s)
	return unicode.Is(unicode.Hangul, r)
}
