package pdf

import (
	"regexp"
	"slices"
)

// A line is a running header or footer when it stands in the outer edge of the
// page at the same height, with the same words but for numbers, on most of at
// least runningPages pages.
const (
	runningPages = 4
	runningShare = 0.6
	runningEdge  = 0.1
)

var digits = regexp.MustCompile(`\d+`)

type place struct {
	text string
	y    int
}

func placeOf(l line) place {
	return place{digits.ReplaceAllString(l.text, "#"), int(l.y / 4)}
}

// dropRunning removes running headers and footers from the pages and returns
// one example of each.
func dropRunning(pages []page) []string {
	seen := map[place]int{}
	full := 0
	for _, p := range pages {
		if len(p.lines) > 0 {
			full++
		}
		for _, l := range p.lines {
			if l.atEdge(p.height) {
				seen[placeOf(l)]++
			}
		}
	}
	if full < runningPages {
		return nil
	}
	var dropped []string
	told := map[place]bool{}
	for i := range pages {
		pages[i].lines = slices.DeleteFunc(pages[i].lines, func(l line) bool {
			at := placeOf(l)
			if !l.atEdge(pages[i].height) || float64(seen[at]) < runningShare*float64(full) {
				return false
			}
			if !told[at] {
				told[at] = true
				dropped = append(dropped, l.text)
			}
			return true
		})
	}
	return dropped
}

func (l line) atEdge(height float64) bool {
	return l.y < runningEdge*height || l.y > (1-runningEdge)*height
}
