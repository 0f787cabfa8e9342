package chat

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"ragd/inference/gguf"
	"ragd/internal/testenv"
)

// golden is testdata/golden.json; its README says what made it.
type golden struct {
	Templates map[string]string
	Cases     []goldenCase
}

type goldenCase struct {
	Template    string
	Context     json.RawMessage
	Want, Error string
}

var goldenTime = time.Date(2026, 3, 5, 14, 7, 9, 0, time.UTC)

func readGolden(t testing.TB) golden {
	t.Helper()
	raw, err := os.ReadFile("testdata/golden.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(raw, &g); err != nil {
		t.Fatal(err)
	}
	return g
}

// contextVars brings a reference context in; its strings are content.
func contextVars(t testing.TB, raw json.RawMessage) map[string]value {
	t.Helper()
	v, err := fromGo(raw, origin{content: true, piece: 1})
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]value{}
	for i, k := range v.(*dict).keys {
		vars[k.(text).s] = v.(*dict).values[i]
	}
	return vars
}

func TestAgainstJinja2(t *testing.T) {
	g := readGolden(t)
	seen := 0
	for _, c := range g.Cases {
		source, ok := g.Templates[c.Template]
		if !ok {
			continue // the model's own, below
		}
		seen++
		checkGolden(t, source, c)
	}
	if seen < 100 {
		t.Errorf("only %d cases", seen)
	}
}

func checkGolden(t *testing.T, source string, c goldenCase) {
	t.Helper()
	tmpl, err := Parse(source)
	if err != nil {
		t.Errorf("%s: %v", c.Template, err)
		return
	}
	got, err := tmpl.render(contextVars(t, c.Context), goldenTime)
	switch {
	case c.Error != "":
		if err == nil || !strings.Contains(err.Error(), c.Error) {
			t.Errorf("%s: error %v, want %q", c.Template, err, c.Error)
		}
	case err != nil:
		t.Errorf("%s: %v\n%s", c.Template, err, source)
	case got.s != c.Want:
		t.Errorf("%s over %s\n got %q\nwant %q\n%s", c.Template, c.Context, got.s, c.Want, source)
	}
}

// The template inside the model gives what the reference gives for it.
func TestModelTemplate(t *testing.T) {
	f, err := gguf.Open(testenv.Model(t, "smollm2-135m-instruct"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	source, ok := f.String("tokenizer.chat_template")
	if !ok {
		t.Fatal("the model has no chat template")
	}
	seen := 0
	for _, c := range readGolden(t).Cases {
		if c.Template == "smollm2" {
			seen++
			checkGolden(t, source, c)
		}
	}
	if seen < 20 {
		t.Errorf("only %d cases", seen)
	}
}
