package telemetry

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"ragd/telemetry/cost"
)

// constants are the strings of names.go whose identifiers begin like that.
func constants(t *testing.T, prefix string) map[string]bool {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "names.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if s, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(s.Names[0].Name, prefix) {
			value, err := strconv.Unquote(s.Values[0].(*ast.BasicLit).Value)
			if err != nil {
				t.Fatal(err)
			}
			out[value] = true
		}
		return true
	})
	return out
}

// section is a part of docs/TELEMETRY.md.
func section(t *testing.T, title string) string {
	t.Helper()
	data, err := os.ReadFile("../docs/TELEMETRY.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(data), "\n## "+title+"\n")
	if !found {
		t.Fatalf("the page has no section %q", title)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

var quoted = regexp.MustCompile("`([^`]+)`")

// told are the names in the first cells of a section's tables; ".used" behind
// "ragd.chunks.retrieved" is "ragd.chunks.used".
func told(t *testing.T, title string) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for line := range strings.Lines(section(t, title)) {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		first, _, _ := strings.Cut(line[2:], "|")
		before := ""
		for _, m := range quoted.FindAllStringSubmatch(first, -1) {
			if strings.HasPrefix(m[1], ".") {
				m[1] = before[:strings.LastIndex(before, ".")] + m[1]
			}
			before = m[1]
			out[before] = true
		}
	}
	return out
}

func same(t *testing.T, what string, page, code map[string]bool) {
	t.Helper()
	for name := range page {
		if !code[name] {
			t.Errorf("the page names the %s %s, which is not there", what, name)
		}
	}
	for name := range code {
		if !page[name] {
			t.Errorf("the page does not name the %s %s", what, name)
		}
	}
}

// The page names the metrics, attributes, stages and fields of the log row that there
// are, and no others.
func TestPageNamesWhatThereIs(t *testing.T) {
	metrics := constants(t, "metric")
	for _, other := range []string{"http.server.request.duration", "db.client.operation.duration", "pgxpool.*"} {
		metrics[other] = true
	}
	same(t, "metric", told(t, "Metrics"), metrics)

	attrs := constants(t, "attr")
	delete(attrs, attrTokenType) // of metrics alone
	same(t, "attribute", told(t, "Spans"), attrs)

	stages := map[string]bool{"other": true, "llm_ttft": true, "ttft": true, "tpot": true, "total": true}
	for _, name := range stageNames {
		stages[name] = true
	}
	same(t, "time", told(t, "Time"), stages)

	row := map[string]bool{}
	for name := range logged(t) {
		row[name] = true
	}
	named := map[string]bool{}
	_, list, _ := strings.Cut(section(t, "Log row"), ":\n") // behind the words before it
	for _, m := range quoted.FindAllStringSubmatch(list, -1) {
		named[m[1]] = true
	}
	same(t, "field", named, row)
}

// logged is the log row of a request with a price, without what slog adds.
func logged(t *testing.T) map[string]any {
	t.Helper()
	r := newRig(t, false)
	ctx, req := r.Begin(t.Context(), "POST /ask", time.Now())
	req.End(ctx, req.Timings(time.Now()), Summary{Outcome: Answered, Cost: &cost.Cost{}})
	var row map[string]any
	if err := json.Unmarshal([]byte(r.log.String()), &row); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(row, func(k string, _ any) bool { return slices.Contains([]string{"time", "level", "msg"}, k) })
	return row
}
