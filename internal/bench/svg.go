package bench

import (
	"fmt"
	"html"
	"io"
	"strings"
)

// Sizes and colours of the pictures, in pixels.
const (
	labelWidth, plotWidth, numberWidth = 120, 520, 90
	barHeight, testGap, panelGap       = 14, 10, 34
	ragdColour, peerColour             = "#0b6e4f", "#b0b0b0"
	font                               = `font-family="sans-serif" font-size="12"`
)

// WriteBars draws the speeds of a report as bars, ragd's beside the peer's, with
// the spread as a line. Prompts, single answers and streams have scales of their
// own.
func WriteBars(w io.Writer, r Report) error {
	var body strings.Builder
	y := 30
	for _, panel := range panels(r) {
		y = drawPanel(&body, panel, y)
	}
	legend := fmt.Sprintf(`<text x="%d" y="18" fill="%s" %s>ragd</text><text x="%d" y="18" fill="#666" %s>peer</text><text x="%d" y="18" %s>tokens a second, median and range</text>`,
		labelWidth, ragdColour, font, labelWidth+50, font, labelWidth+100, font)
	return writeSVG(w, labelWidth+plotWidth+numberWidth, y, legend+body.String())
}

// panels groups the tests that share a scale.
func panels(r Report) [][]Test {
	groups := make([][]Test, 3)
	for _, t := range r.Tests {
		_, streams := parseStreams(t.Name)
		s, shaped := parseShape(t.Name)
		switch {
		case streams:
			groups[2] = append(groups[2], t)
		case shaped && s.generate > 0:
			groups[1] = append(groups[1], t)
		case shaped:
			groups[0] = append(groups[0], t)
		}
	}
	return groups
}

func drawPanel(w *strings.Builder, tests []Test, y int) int {
	top := 0.0
	for _, t := range tests {
		top = max(top, t.Ragd.Max)
		if t.Peer != nil {
			top = max(top, t.Peer.Max)
		}
	}
	for _, t := range tests {
		fmt.Fprintf(w, `<text x="%d" y="%d" text-anchor="end" %s>%s</text>`, labelWidth-8, y+barHeight-2, font, html.EscapeString(t.Name))
		y = drawBar(w, t.Ragd, top, y, ragdColour)
		if t.Peer != nil {
			y = drawBar(w, *t.Peer, top, y, peerColour)
		}
		y += testGap
	}
	if len(tests) > 0 {
		y += panelGap - testGap
	}
	return y
}

func drawBar(w *strings.Builder, s Spread, top float64, y int, colour string) int {
	at := func(v float64) float64 { return labelWidth + plotWidth*v/top }
	middle := float64(y) + barHeight/2
	fmt.Fprintf(w, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`, labelWidth, y, at(s.Median)-labelWidth, barHeight-2, colour)
	fmt.Fprintf(w, `<line x1="%.1f" x2="%.1f" y1="%.1f" y2="%.1f" stroke="black"/>`, at(s.Min), at(s.Max), middle, middle)
	fmt.Fprintf(w, `<text x="%.1f" y="%d" %s>%.0f</text>`, at(s.Max)+6, y+barHeight-3, font, s.Median)
	return y + barHeight
}

// Point is one request in a scatter picture.
type Point struct{ X, Y float64 }

// WriteScatter draws points over axes that begin at zero.
func WriteScatter(w io.Writer, points []Point, xName, yName string) error {
	const height, left, bottom = 320, 60, 40
	maxX, maxY := 1.0, 1.0
	for _, p := range points {
		maxX, maxY = max(maxX, p.X), max(maxY, p.Y)
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<path d="M%d 10V%dH%d" fill="none" stroke="black"/>`, left, height-bottom, left+plotWidth)
	for i := range 5 {
		share := float64(i) / 4
		x, y := left+plotWidth*share, float64(height-bottom)-(height-bottom-20)*share
		fmt.Fprintf(&b, `<text x="%.0f" y="%d" text-anchor="middle" %s>%.0f</text>`, x, height-bottom+16, font, maxX*share)
		fmt.Fprintf(&b, `<text x="%d" y="%.0f" text-anchor="end" %s>%.0f</text>`, left-6, y+4, font, maxY*share)
	}
	for _, p := range points {
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s" fill-opacity="0.6"/>`,
			left+plotWidth*p.X/maxX, float64(height-bottom)-(height-bottom-20)*p.Y/maxY, ragdColour)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle" %s>%s</text>`, left+plotWidth/2, height-6, font, html.EscapeString(xName))
	fmt.Fprintf(&b, `<text x="%d" y="12" %s>%s</text>`, left+6, font, html.EscapeString(yName))
	return writeSVG(w, left+plotWidth+20, height, b.String())
}

func writeSVG(w io.Writer, width, height int, body string) error {
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d"><rect width="100%%" height="100%%" fill="white"/>%s</svg>`+"\n",
		width, height, width, height, body)
	return err
}
