package bench

import (
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"
)

//go:embed report.html.tmpl
var page string

// WriteHTML writes a report as one page that loads nothing from elsewhere.
func WriteHTML(w io.Writer, r SweepReport) error {
	t, err := template.New("report").Funcs(template.FuncMap{
		"ms":      func(v float64) string { return fmt.Sprintf("%.1f", v) },
		"rate":    func(v float64) string { return fmt.Sprintf("%.2f", v) },
		"percent": func(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) },
		"stage":   func(run AskReport, name string) StageSpread { s, _ := run.Stage(name); return s },
	}).Parse(page)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	ttft := r.all(func(a AskReport) []Point { return a.Points })
	total := r.all(func(a AskReport) []Point { return a.Outputs })
	view := struct {
		SweepReport
		TTFT, Total, Rates    template.HTML
		TTFTSlope, TotalSlope string
	}{SweepReport: r, TTFTSlope: slope(ttft), TotalSlope: slope(total)}
	for _, p := range []struct {
		into  *template.HTML
		write func(io.Writer) error
	}{
		{&view.TTFT, func(w io.Writer) error { return WriteScatter(w, ttft, "input tokens", "time to first token, ms") }},
		{&view.Total, func(w io.Writer) error { return WriteScatter(w, total, "output tokens", "total, ms") }},
		{&view.Rates, func(w io.Writer) error { return writeRates(w, &r) }},
	} {
		var b strings.Builder
		if err := p.write(&b); err != nil {
			return err
		}
		*p.into = template.HTML(b.String()) // drawn here, every text in it escaped
	}
	return t.Execute(w, view)
}

// slope words the least-squares line through the points.
func slope(points []Point) string {
	perToken, base, ok := leastSquares(points)
	if !ok {
		return ""
	}
	return fmt.Sprintf("Least squares: %.2f ms a token, %.0f ms without any.", perToken, base)
}

// leastSquares is the line y = slope·x + base through the points, if they have one.
func leastSquares(points []Point) (slope, base float64, ok bool) {
	var x, y, xx, xy float64
	n := float64(len(points))
	for _, p := range points {
		x, y = x+p.X/n, y+p.Y/n
	}
	for _, p := range points {
		xx, xy = xx+(p.X-x)*(p.X-x), xy+(p.X-x)*(p.Y-y)
	}
	if xx == 0 {
		return 0, 0, false
	}
	return xy / xx, y - xy/xx*x, true
}

// writeRates draws what was answered, and what of it was good, over what was sent.
func writeRates(w io.Writer, r *SweepReport) error {
	answered := r.Curve(func(a AskReport) float64 { return a.Throughput })
	good := r.Curve(func(a AskReport) float64 { return a.Goodput })
	return writeLines(w, "questions a second", "answers a second: all (green), first token in time (grey)", []curve{
		{ragdColour, answered}, {peerColour, good},
	})
}

// curve is a line through points.
type curve struct {
	colour string
	points []Point
}

// writeLines draws curves over axes that begin at zero.
func writeLines(w io.Writer, xName, yName string, curves []curve) error {
	var all []Point
	for _, c := range curves {
		all = append(all, c.points...)
	}
	f := newFrame(all, 2)
	var b strings.Builder
	f.axes(&b, xName, yName)
	for _, c := range curves {
		var line strings.Builder
		for _, p := range slices.SortedFunc(slices.Values(c.points), func(a, b Point) int { return cmp.Compare(a.X, b.X) }) {
			fmt.Fprintf(&line, "%.1f,%.1f ", f.x(p.X), f.y(p.Y))
			fmt.Fprintf(&b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`, f.x(p.X), f.y(p.Y), c.colour)
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>`, line.String(), c.colour)
	}
	return writeSVG(w, frameLeft+plotWidth+20, frameHeight, b.String())
}
