package source

import (
	"ragd/ingest"
	"ragd/ingest/internal/markdown"
)

// extractPlain keeps the text as it is.
func extractPlain(*ingest.Document) error { return nil }

// extractMarkdown takes the front matter off and finds the title; the text
// stays the source's own Markdown.
func extractMarkdown(d *ingest.Document) error {
	d.Markdown = true
	front, body := splitFrontMatter(d.Text)
	d.Text = body
	if front != "" {
		readFrontMatter(d, front)
	}
	if d.Title == "" {
		d.Title = firstHeading(d.Text)
	}
	return nil
}

// firstHeading is the text of the first heading, or "".
func firstHeading(text string) string {
	for _, b := range markdown.Blocks(text) {
		if b.Kind == markdown.Heading && b.Title != "" {
			return b.Title
		}
	}
	return ""
}
