package bench

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// EngineTests are the tests that run when none are named.
var EngineTests = []string{
	"pp128", "pp512", "pp2048", "tg64", "tg64@d1024", "tg64@d2048", "tg64@d4096",
	"streams1", "streams4", "streams8", "warm_prefix", "gap", "no_kv_cache", "lookup", "lookup_free",
}

// shape is a test that llama-bench has too: a prompt of some tokens or some tokens
// one by one, both after depth others.
type shape struct{ prompt, generate, depth int }

func (s shape) tokens() int { return s.prompt + s.generate + s.depth }

var (
	shapeName   = regexp.MustCompile(`^(pp|tg)([1-9][0-9]{0,5})(?:@d([1-9][0-9]{0,5}))?$`)
	streamsName = regexp.MustCompile(`^streams([1-9][0-9]?)$`)
	selfTests   = []string{"warm_prefix", "gap", "no_kv_cache", "lookup", "lookup_free"}
)

// parseShape reads names like pp512 and tg64@d2048.
func parseShape(name string) (shape, bool) {
	m := shapeName.FindStringSubmatch(name)
	if m == nil {
		return shape{}, false
	}
	n, _ := strconv.Atoi(m[2]) // the pattern lets only numbers pass
	s := shape{prompt: n}
	if m[1] == "tg" {
		s = shape{generate: n}
	}
	s.depth, _ = strconv.Atoi(m[3]) // 0 when absent
	return s, true
}

// parseStreams reads names like streams8.
func parseStreams(name string) (n int, ok bool) {
	m := streamsName.FindStringSubmatch(name)
	if m == nil {
		return 0, false
	}
	n, _ = strconv.Atoi(m[1])
	return n, true
}

// CheckTests reports the first name that is no engine test.
func CheckTests(names []string) error {
	for _, name := range names {
		_, isShape := parseShape(name)
		_, isStreams := parseStreams(name)
		if !isShape && !isStreams && !slices.Contains(selfTests, name) {
			return fmt.Errorf("no such test: %q; there are ppN, tgN, both with @dN, streamsN and %v", name, selfTests)
		}
	}
	return nil
}
