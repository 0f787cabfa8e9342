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

// frame is a pair of axes that begin at zero.
type frame struct {
	maxX, maxY float64
	digits     int // of the numbers on the axes
}

const frameHeight, frameLeft, frameBottom = 320, 60, 40

func newFrame(points []Point, digits int) frame {
	f := frame{digits: digits}
	for _, p := range points {
		f.maxX, f.maxY = max(f.maxX, p.X), max(f.maxY, p.Y)
	}
	if f.maxX == 0 {
		f.maxX = 1
	}
	if f.maxY == 0 {
		f.maxY = 1
	}
	return f
}

func (f frame) x(v float64) float64 { return frameLeft + plotWidth*v/f.maxX }

func (f frame) y(v float64) float64 {
	return frameHeight - frameBottom - (frameHeight-frameBottom-20)*v/f.maxY
}

func (f frame) axes(b *strings.Builder, xName, yName string) {
	fmt.Fprintf(b, `<path d="M%d 10V%dH%d" fill="none" stroke="black"/>`, frameLeft, frameHeight-frameBottom, frameLeft+plotWidth)
	for i := range 5 {
		x, y := f.maxX*float64(i)/4, f.maxY*float64(i)/4
		fmt.Fprintf(b, `<text x="%.0f" y="%d" text-anchor="middle" %s>%.*f</text>`, f.x(x), frameHeight-frameBottom+16, font, f.digits, x)
		fmt.Fprintf(b, `<text x="%d" y="%.0f" text-anchor="end" %s>%.*f</text>`, frameLeft-6, f.y(y)+4, font, f.digits, y)
	}
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="middle" %s>%s</text>`, frameLeft+plotWidth/2, frameHeight-6, font, html.EscapeString(xName))
	fmt.Fprintf(b, `<text x="%d" y="12" %s>%s</text>`, frameLeft+6, font, html.EscapeString(yName))
}

// WriteScatter draws points over axes that begin at zero.
func WriteScatter(w io.Writer, points []Point, xName, yName string) error {
	f := newFrame(points, 0)
	var b strings.Builder
	f.axes(&b, xName, yName)
	for _, p := range points {
		fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s" fill-opacity="0.6"/>`, f.x(p.X), f.y(p.Y), ragdColour)
	}
	return writeSVG(w, frameLeft+plotWidth+20, frameHeight, b.String())
}

func writeSVG(w io.Writer, width, height int, body string) error {
	_, err := fmt.Fprintf(w, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d"><rect width="100%%" height="100%%" fill="white"/>%s</svg>`+"\n",
		width, height, width, height, body)
	return err
}
