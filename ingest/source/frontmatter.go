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

// Bounds of a front matter block: a longer one is body, and what is beyond the
// others is not kept. The YAML parser needs much time for deeply nested or
// broken input of 60 KB, so the block is kept small.
const (
	frontMatterBytes = 16 << 10
	metadataKeys     = 64
	metadataValue    = 1 << 10
	metadataNodes    = 1 << 10 // values looked at: aliases can repeat without end
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
	f := flattener{metadata: make(map[string]any), nodes: metadataNodes}
	f.mapping("", keys)
	if f.full {
		warn(d, "front matter holds more than %d keys or %d values; the rest was left out", metadataKeys, metadataNodes)
	}
	if len(f.metadata) > 0 {
		d.Metadata = f.metadata
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

// flattener stores scalars as strings, lists as lists of strings and nested
// keys with a dot between, in the order of the keys.
type flattener struct {
	metadata map[string]any
	nodes    int // still allowed to be looked at
	full     bool
}

func (f *flattener) mapping(prefix string, m map[string]any) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if f.nodes--; f.nodes < 0 || len(f.metadata) >= metadataKeys {
			f.full = true
			return
		}
		if k != "" && len(prefix)+len(k) <= metadataValue {
			f.value(prefix+storable(k), m[k])
		}
	}
}

func (f *flattener) value(key string, value any) {
	switch v := value.(type) {
	case map[string]any:
		f.mapping(key+".", v)
	case []any:
		f.metadata[key] = f.list(v)
	default:
		if s, ok := scalar(v); ok {
			f.metadata[key] = s
		}
	}
}

func (f *flattener) list(items []any) []string {
	var out []string
	for _, item := range items {
		if f.nodes--; f.nodes < 0 {
			f.full = true
			break
		}
		if s, ok := scalar(item); ok {
			out = append(out, s)
		}
	}
	return out
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
