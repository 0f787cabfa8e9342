package chat_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"ragd/prompt"
	"ragd/prompt/chat"
)

var (
	question = prompt.Part{Kind: prompt.Question}
	evidence = prompt.Part{Kind: prompt.Evidence, Index: 2}
)

func user(pieces ...prompt.Piece) []prompt.Message {
	return []prompt.Message{{Role: "user", Pieces: pieces}}
}

func render(t testing.TB, source string, in chat.Input) ([]prompt.Segment, error) {
	t.Helper()
	tmpl, err := chat.Parse(source)
	if err != nil {
		t.Fatalf("%s: %v", source, err)
	}
	return tmpl.Render(in)
}

func scaffold(s string) prompt.Segment { return prompt.Segment{Text: s, Scaffold: true} }

func content(s string, part prompt.Part) prompt.Segment { return prompt.Segment{Text: s, Part: part} }

// Whatever a template does to a string, each character keeps its origin.
func TestSegments(t *testing.T) {
	const c = "messages[0].content"
	tests := []struct {
		expr string
		want []prompt.Segment
	}{
		{"'<' + " + c + " + '>'", []prompt.Segment{scaffold("<"), content(" [e] ", evidence), content("Q<b> ", question), scaffold(">")}},
		{"('<' ~ " + c + " ~ ' ') | trim", []prompt.Segment{scaffold("<"), content(" [e] ", evidence), content("Q<b>", question)}},
		{c + ".strip()[1:6]", []prompt.Segment{content("e] ", evidence), content("Q<", question)}},
		{c + "[::-1]", []prompt.Segment{content(" >b<Q", question), content(" ]e[ ", evidence)}},
		{c + " | upper", []prompt.Segment{content(" [E] ", evidence), content("Q<B> ", question)}},
		{c + ".replace('e] Q', '--')", []prompt.Segment{content(" [", evidence), scaffold("--"), content("<b> ", question)}},
		{"'a|b'.replace('|', " + c + ")", []prompt.Segment{scaffold("a"), content(" [e] ", evidence), content("Q<b> ", question), scaffold("b")}},
		{c + ".split(' ') | join('_')", []prompt.Segment{scaffold("_"), content("[e]", evidence), scaffold("_"), content("Q<b>", question), scaffold("_")}},
		{"[" + c + " | trim]", []prompt.Segment{scaffold("['"), content("[e] ", evidence), content("Q<b>", question), scaffold("']")}},
		{"'[e]' if '[e]' in " + c + " else ''", []prompt.Segment{scaffold("[e]")}},
		{c + " | first ~ " + c + "[-2]", []prompt.Segment{content(" ", evidence), content(">", question)}},
		{c + " | list | last", []prompt.Segment{content(" ", question)}},
		{"'{}!'.format(" + c + " | trim)", []prompt.Segment{content("[e] ", evidence), content("Q<b>", question), scaffold("!")}},
		{c + " | tojson", []prompt.Segment{content("\" [e] ", evidence), content("Q<b> ", question), content("\"", evidence)}},
		{"('x' * 2) ~ (" + c + " * 2)[:6]", []prompt.Segment{scaffold("xx"), content(" [e] ", evidence), content("Q", question)}},
		{"messages[0].role ~ bos_token", []prompt.Segment{scaffold("user<s>")}},
	}
	for _, tc := range tests {
		in := chat.Input{BOS: "<s>", Messages: user(prompt.Piece{Text: " [e] ", Part: evidence}, prompt.Piece{Text: "Q<b> ", Part: question})}
		got, err := render(t, "{{ "+tc.expr+" }}", in)
		if err != nil {
			t.Errorf("%s: %v", tc.expr, err)
			continue
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.expr, diff)
		}
	}
}

// Pieces of one part stay apart, so that each can be counted alone.
func TestPiecesStayApart(t *testing.T) {
	got, err := render(t, "{% for m in messages %}{{ m.content }}{% endfor %}", chat.Input{
		Messages: user(prompt.Piece{Text: "a"}, prompt.Piece{Text: "b"}, prompt.Piece{Text: ""}, prompt.Piece{Text: "c", Part: question}),
	})
	want := []prompt.Segment{content("a", prompt.Part{}), content("b", prompt.Part{}), content("c", question)}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestToolsAndExtra(t *testing.T) {
	got, err := render(t, "{{ tools[0] | tojson }}{{ mode }}{{ strftime_now('%Y') }}{% if flag %}!{% endif %}", chat.Input{
		Tools: []any{json.RawMessage(`{"z": "<|im_end|>", "a": 1.0}`)},
		Extra: map[string]any{"mode": "<s>", "flag": true, "messages": "hidden"},
		Now:   time.Date(2031, 1, 2, 3, 4, 5, 0, time.UTC),
	})
	want := []prompt.Segment{
		content(`{"z": "<|im_end|>", "a": 1.0}`, prompt.Part{Kind: prompt.Tools}), content("<s>", prompt.Part{}), scaffold("2031!"),
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestRolesAreWords(t *testing.T) {
	tmpl, err := chat.Parse("{{ messages[0].role }}")
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"", "<|im_start|>", "user\n", "User", strings.Repeat("a", 33)} {
		if _, err := tmpl.Render(chat.Input{Messages: []prompt.Message{{Role: role}}}); err == nil {
			t.Errorf("role %q passed", role)
		}
	}
}

func TestErrorsNameTheirPlace(t *testing.T) {
	tests := []struct {
		source    string
		line      int
		construct string
		is        error
	}{
		{"a\n{{ 1 + }}", 2, "syntax", nil},
		{"\n{% if x %}\nx", 3, "syntax", nil},
		{"\n{% for x in %}{% endfor %}", 2, "syntax", nil},
		{"\n\n{# never closed", 3, "syntax", nil},
		{"{{ 'open }}", 1, "syntax", nil},
		{"{{ (1 }}", 1, "syntax", nil},
		{"{{ ] }}", 1, "syntax", nil},
		{"{{ 1 ! 2 }}", 1, "syntax", nil},
		{"{% break %}", 1, "syntax", nil},
		{"{{ f(a=1, 2) }}", 1, "syntax", nil},
		{"{{ x[1:2:3:4] }}", 1, "syntax", nil},
		{"\n{% include 'x' %}", 2, "block include", chat.ErrUnsupported},
		{"{{ 2 ** 3 }}", 1, "operator **", chat.ErrUnsupported},
		{"\n\n{{ 'a' | urlize }}", 3, "filter urlize", chat.ErrUnsupported},
		{"{{ 'a' is weird }}", 1, "test weird", chat.ErrUnsupported},
		{"{{ nothing.at.all }}", 1, "attribute at", nil},
		{"\n{{ nothing['x']['y'] }}", 2, "subscript", nil},
		{"{{ 1 + 'a' }}", 1, "operator +", nil},
		{"{{ 1 // 0 }}", 1, "operator //", nil},
		{"{{ 9223372036854775807 + 1 }}", 1, "operator +", nil},
		{"{{ 1 < 'a' }}", 1, "operator <", nil},
		{"{{ 'abc'[::0] }}", 1, "slice", nil},
		{"{{ nothing() }}", 1, "call of nothing", nil},
		{"{{ 'x'.split('') }}", 1, "call of split", nil},
		{"{% for a, b in [1] %}{% endfor %}", 1, "for", nil},
		{"{% set x = 1 %}\n{% set x.y = 2 %}", 2, "set", nil},
		{"\n{{ namespace(a=1) | tojson }}", 2, "filter tojson", nil},
		{"{{ '%Q' | string }}{{ strftime_now('%Q') }}", 1, "call of strftime_now", chat.ErrUnsupported},
		{"\n{{ raise_exception('not like this') }}", 2, "call of raise_exception", nil},
	}
	for _, tc := range tests {
		tmpl, err := chat.Parse(tc.source)
		if err == nil {
			_, err = tmpl.Render(chat.Input{Messages: user()})
		}
		var placed *chat.Error
		if !errors.As(err, &placed) {
			t.Errorf("%q: %v", tc.source, err)
			continue
		}
		if placed.Line != tc.line || placed.Construct != tc.construct || tc.is != nil && !errors.Is(err, tc.is) {
			t.Errorf("%q: line %d, %s: %v; want line %d, %s", tc.source, placed.Line, placed.Construct, err, tc.line, tc.construct)
		}
	}
}

func TestRaisedError(t *testing.T) {
	_, err := render(t, "{{ raise_exception('roles must take turns') }}", chat.Input{})
	var raised *chat.RaisedError
	if !errors.As(err, &raised) || raised.Message != "roles must take turns" {
		t.Errorf("got %v", err)
	}
}

// Nothing but keys and the listed methods can be reached from a value.
func TestNoWayOut(t *testing.T) {
	for _, x := range []string{
		"''.__class__", "messages.__class__", "messages[0].__init__", "messages.append", "messages.pop", "namespace.__globals__",
		"range.__self__", "cycler", "lipsum", "self", "messages[0]['__class__']", "''['__class__']", "(1).real", "loop", "_context",
	} {
		got, err := render(t, "{{ ("+x+") is defined }}", chat.Input{Messages: user()})
		if err != nil || len(got) != 1 || got[0].Text != "False" {
			t.Errorf("%s: %v, %v", x, got, err)
		}
	}
	// A key that content spells never becomes a method.
	_, err := render(t, "{{ 'x'[messages[0].content]() }}", chat.Input{Messages: user(prompt.Piece{Text: "upper"})})
	if err == nil {
		t.Error("content named a method")
	}
}

// Templates that would not end, or not fit, stop with ErrLimit.
func TestLimits(t *testing.T) {
	double := "{% set ns = namespace(s='xxxxxxxxxxxxxxxx') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}{% endfor %}"
	for name, source := range map[string]string{
		"steps":         "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
		"range":         "{{ range(999999999) | length }}",
		"repeat":        "{{ 'x' * 999999999999 }}",
		"doubling":      double,
		"output":        "{% set x = 'y' * 9999999 %}{{ x }}{{ x }}",
		"work":          "{% set x = 'y' * 9999999 %}{% for i in range(99) %}{% set z = x.upper() %}{% endfor %}",
		"recursion":     "{% macro f(n) %}{{ f(n + 1) }}{% endmacro %}{{ f(0) }}",
		"long sum":      "{{ 1" + strings.Repeat(" + 1", 5000) + " }}",
		"replace":       "{% set x = 'y' * 999999 %}{{ x.replace('y', x) }}",
		"join":          "{% set x = 'y' * 9999999 %}{{ [x, x, x] | join }}",
		"indent":        "{{ 'a' | indent(99999999) }}",
		"deep data":     "{% set ns = namespace(l=[]) %}{% for i in range(300) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l | tojson }}",
		"deep repr":     "{% set ns = namespace(l=[]) %}{% for i in range(300) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}",
		"wide repr":     "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}",
		"list doubling": "{% set ns = namespace(l=[1]) %}{% for i in range(60) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
	} {
		start := time.Now()
		if _, err := render(t, source, chat.Input{}); !errors.Is(err, chat.ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
		t.Logf("%s took %v", name, time.Since(start))
	}
	for name, source := range map[string]string{
		"source":   strings.Repeat(" ", 1<<20),
		"brackets": "{{ " + strings.Repeat("(", 9999) + strings.Repeat(")", 9999) + " }}",
		"nots":     "{{ " + strings.Repeat("not ", 9999) + "x }}",
		"signs":    "{{ " + strings.Repeat("-", 9999) + "x }}",
		"blocks":   strings.Repeat("{% if x %}", 9999),
	} {
		if _, err := chat.Parse(source); !errors.Is(err, chat.ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func ExampleTemplate_Render() {
	tmpl, err := chat.Parse("{% for m in messages %}{{ '<|' + m.role + '|>' + m.content | trim + '<|end|>' }}{% endfor %}")
	if err != nil {
		fmt.Println(err)
		return
	}
	segments, err := tmpl.Render(chat.Input{Messages: []prompt.Message{
		{Role: "user", Pieces: []prompt.Piece{{Text: " Is <|end|> text? ", Part: prompt.Part{Kind: prompt.Question}}}},
	}})
	for _, s := range segments {
		fmt.Printf("%v %q\n", s.Scaffold, s.Text)
	}
	fmt.Println(err)
	// Output:
	// true "<|user|>"
	// false "Is <|end|> text?"
	// true "<|end|>"
	// <nil>
}
