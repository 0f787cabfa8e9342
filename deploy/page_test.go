package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// unseen are the metrics that no panel and no rule asks for, and why.
var unseen = map[string]string{
	"target_info": "what the process says of itself, no figure",
	"pgxpool_acquire_duration_nanoseconds_total": "mostly the time of the callers, not of waiting",
	"pgxpool_canceled_acquires_total":            "callers who left; their outcome is in the requests",
	"pgxpool_constructing_connections":           "a moment in the life of a connection",
	"pgxpool_empty_acquire_total":                "how many waited; how long is what is shown",
	"pgxpool_max_idle_destroys_total":            "ordinary turnover",
	"pgxpool_max_lifetime_destroys_total":        "ordinary turnover",
	"pgxpool_new_connections_total":              "ordinary turnover",
	"pgxpool_total_connections":                  "the sum of those shown",
	"process_max_fds":                            "a bound of the system",
	"process_open_fds":                           "for a search by hand",
	"process_start_time_seconds":                 "for a search by hand",
	"process_virtual_memory_bytes":               "says little of a process that maps files",
	"process_virtual_memory_max_bytes":           "a bound of the system",
	"process_network_receive_bytes_total":        "the machine's, where it is not a container",
	"process_network_transmit_bytes_total":       "the machine's, where it is not a container",
}

var family = regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)$`)

// families are the metrics of a scrape, without the suffixes of histograms.
func families(text string) []string {
	var out []string
	for _, m := range family.FindAllStringSubmatch(text, -1) {
		out = append(out, m[1])
	}
	return out
}

// Whatever ragd exposes, a panel or a rule asks for, or there is a reason not to.
func TestEveryMetricIsAskedFor(t *testing.T) {
	asked := map[string]bool{}
	note := func(expr string) {
		for name := range metrics(expr) {
			asked[name] = true
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				asked[strings.TrimSuffix(name, suffix)] = true
			}
		}
	}
	for _, q := range dashboardQueries(t) {
		note(q.expr)
	}
	for _, f := range ruleFiles(t) {
		for _, g := range f.Groups {
			for _, r := range g.Rules {
				note(r.Expr)
			}
		}
	}
	have := families(scraped(t))
	for _, name := range have {
		switch reason := unseen[name]; {
		case !asked[name] && reason == "":
			t.Errorf("no panel and no rule asks for %s", name)
		case asked[name] && reason != "":
			t.Errorf("%s is asked for, though %q", name, reason)
		}
	}
	for name := range unseen {
		// What a system tells of a process differs.
		if !slices.Contains(have, name) && !strings.HasPrefix(name, "process_") {
			t.Errorf("there is no metric %s", name)
		}
	}
}

// row is one of a table in docs/TELEMETRY.md: its cells.
type row []string

// pageRows are the tables' rows of one section of the page.
func pageRows(t *testing.T, section string) []row {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "docs", "TELEMETRY.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, found := strings.Cut(string(data), "\n## "+section+"\n")
	if !found {
		t.Fatalf("the page has no section %q", section)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	var out []row
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "|--") {
			out = append(out, strings.Split(strings.Trim(line, "|"), "|"))
		}
	}
	return out
}

var quoted = regexp.MustCompile("`([^`]+)`")

// names are the words in backquotes; ".free" behind "ragd.kv.blocks.used" is
// "ragd.kv.blocks.free".
func names(cell string) []string {
	var out []string
	for _, m := range quoted.FindAllStringSubmatch(cell, -1) {
		name := m[1]
		if strings.HasPrefix(name, ".") {
			before := out[len(out)-1]
			name = before[:strings.LastIndex(before, ".")] + name
		}
		out = append(out, name)
	}
	return out
}

// The page's table of metrics has what a process exposes, with its labels, and no more.
func TestPageHasTheMetrics(t *testing.T) {
	text := scraped(t)
	have, samples := families(text), parse(text)
	told := map[string]bool{"target_info": true}
	labels := ""
	for _, r := range pageRows(t, "Metrics") {
		if len(r) != 5 || !quoted.MatchString(r[1]) {
			continue
		}
		if !strings.HasPrefix(strings.TrimSpace(r[3]), "same") {
			labels = r[3]
		}
		for _, name := range names(r[1]) {
			if prefix, all := strings.CutSuffix(name, "*"); all {
				for _, h := range have {
					told[h] = told[h] || strings.HasPrefix(h, prefix)
				}
				continue
			}
			told[name] = true
			if !slices.Contains(have, name) {
				t.Errorf("the page names %s, which is not exposed", name)
				continue
			}
			series := samples[name]
			if series == nil {
				series = samples[name+"_bucket"]
			}
			for _, l := range names(labels + r[3]) {
				if !series[l] && l != "chat" && l != "input" && l != "output" {
					t.Errorf("the page says that %s has the label %s; it has %v", name, l, series)
				}
			}
		}
	}
	for _, name := range have {
		if !told[name] {
			t.Errorf("the page does not name %s", name)
		}
	}
}

// The page's buckets are those of the histograms.
func TestPageHasTheBuckets(t *testing.T) {
	text := scraped(t)
	inPrometheus := map[string]string{}
	for _, r := range pageRows(t, "Metrics") {
		if len(r) == 5 {
			ours, theirs := names(r[0]), names(r[1])
			for i := range min(len(ours), len(theirs)) {
				inPrometheus[ours[i]] = theirs[i]
			}
		}
	}
	told := map[string]bool{}
	for _, r := range pageRows(t, "Metrics") {
		if len(r) != 2 {
			continue
		}
		for _, name := range names(r[0]) {
			series := inPrometheus[name]
			told[series] = true
			if want, got := strings.Join(bounds(text, series), " "), strings.TrimSpace(r[1]); got != want {
				t.Errorf("the page says that %s has the bounds %s; they are %s", name, got, want)
			}
		}
	}
	for _, m := range family.FindAllStringSubmatch(text, -1) {
		if m[2] == "histogram" && !told[m[1]] {
			t.Errorf("the page does not say what bounds %s has", m[1])
		}
	}
}

// bounds are the upper bounds of a histogram's first series, without the last.
func bounds(text, histogram string) []string {
	var out []string
	for _, m := range regexp.MustCompile(`(?m)^`+histogram+`_bucket\{[^}]*le="([^"]+)"`).FindAllStringSubmatch(text, -1) {
		if m[1] == "+Inf" {
			return out
		}
		bound, err := strconv.ParseFloat(m[1], 64)
		if err != nil {
			return append(out, m[1])
		}
		out = append(out, strconv.FormatFloat(bound, 'f', -1, 64))
	}
	return out
}
