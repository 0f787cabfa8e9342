package markdown

import "regexp"

// blockStart is what would make a line of plain text a heading, a quote, a table, a
// fence or a rule.
var blockStart = regexp.MustCompile("^(#{1,6}(\\s|$)|>|\\||```|~~~|[-=*_]{3,}\\s*$)")

// EscapeBlock keeps the first line of a paragraph of plain text from being read as
// the start of another block.
func EscapeBlock(line string) string {
	if blockStart.MatchString(line) {
		return `\` + line
	}
	return line
}
