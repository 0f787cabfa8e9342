//go:build gemma

package tokenizer_test

import (
	"strings"
	"testing"
)

// Gemma's licence has terms that a user must agree to, so its file is fetched
// only by `make test-gemma`.

// The reference takes </s>, in this vocabulary an HTML tag that the file marks as
// user-defined, for a control token because of its spelling.
func TestGoldenGemma3(t *testing.T) {
	strikes := func(s string) bool { return strings.Contains(s, "</s>") }
	checkGolden(t, "gemma3", plain(fromGGUF(t, "gemma-3-270m")), strikes)
}
