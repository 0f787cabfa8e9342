package main

import (
	"io"
	"os"
)

// styles are SGR parameters (ECMA-48).
const (
	bold  = "1"
	faint = "2"
	red   = "31"
	cyan  = "36"
)

// styled is text in a style where a person sees it: at a terminal, unless NO_COLOR
// is set (no-color.org) or the terminal is dumb.
func styled(w io.Writer, style, text string) string {
	if style == "" || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" || !isTerminal(w) {
		return text
	}
	return "\033[" + style + "m" + text + "\033[0m"
}
