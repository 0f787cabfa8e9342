package source

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"

	"ragd/ingest"
)

// Bounds of a front matter block: more is no front matter, or not kept.
const (
	frontMatterBytes = 64 << 10
	metadataKeys     = 64
	metadataValue    = 1 << 10
)

var frontMatterKey = regexp.MustCompile(`(?m)^["']?[\p{L}\p{N}_. -]+["']?[ \t]*:(?:[ \t]|$)`)

// splitFrontMatter splits a YAML block from the top of a Markdown text: the
// first line is exactly "---", a later line "---" or "..." closes it, and what
// is between holds a key and no blank first line. Otherwise all is body.
func splitFrontMatter(text string) (front, body string) {
	rest, ok := cutLine(text, "---")
	if !ok {
		return "", text
	}
	for at := 0; at < len(rest) && at <= frontMatterBytes; {
		end := at + lineLen(rest[at:])
		switch strings.TrimRight(rest[at:end], " \t\n") {
		case "---", "...":
			front = rest[:at]
			if strings.HasPrefix(front, "\n") || !frontMatterKey.MatchString(front) {
				return "", text
			}
			return front, rest[end:]
		}
		at = end
	}
	return "", text
}

func cutLine(text, line string) (rest string, ok bool) {
	n := lineLen(text)
	return text[n:], strings.TrimRight(text[:n], " \t\n") == line && strings.HasPrefix(text, line)
}

func lineLen(s string) int {
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		return i + 1
	}
	return len(s)
}

// readFrontMatter turns the keys into metadata. Broken YAML loses the metadata
// and says so; it never fails the file.
func readFrontMatter(d *ingest.Document, front string) {
	var keys map[string]any
	if err := unmarshalYAML(front, &keys); err != nil {
		warn(d, "front matter is not valid YAML and was left out: %s", firstLine(err.Error()))
		return
	}
	for _, k := range slices.Sorted(maps.Keys(keys)) {
		if len(d.Metadata) >= metadataKeys {
			warn(d, "front matter holds more than %d keys; the rest was left out", metadataKeys)
			break
		}
		flatten(d, k, keys[k])
	}
	if t, ok := d.Metadata["title"].(string); ok {
		d.Title = strings.TrimSpace(t)
	}
}

// unmarshalYAML also turns a panic of the parser into an error: metadata is
// never worth the document.
func unmarshalYAML(s string, into *map[string]any) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("yaml: %v", r)
		}
	}()
	return yaml.Unmarshal([]byte(s), into)
}

// flatten stores scalars as strings, lists as lists of strings and nested keys
// with a dot between.
func flatten(d *ingest.Document, key string, value any) {
	if key == "" || len(key) > metadataValue {
		return
	}
	if d.Metadata == nil {
		d.Metadata = make(map[string]any)
	}
	switch v := value.(type) {
	case nil:
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			if len(d.Metadata) < metadataKeys {
				flatten(d, key+"."+k, v[k])
			}
		}
	case []any:
		var list []string
		for _, item := range v {
			if s, ok := scalar(item); ok && len(list) < metadataKeys {
				list = append(list, s)
			}
		}
		d.Metadata[key] = list
	default:
		if s, ok := scalar(v); ok {
			d.Metadata[key] = s
		}
	}
}

func scalar(v any) (string, bool) {
	var s string
	switch v := v.(type) {
	case nil, map[string]any, []any:
		return "", false
	case string:
		s = v
	case time.Time:
		s = v.Format(time.RFC3339)
	default:
		s = fmt.Sprint(v)
	}
	if len(s) > metadataValue {
		s = strings.ToValidUTF8(s[:metadataValue], "")
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\ufffd"), "\x00", " "), true
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
