package prompt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"ragd/prompt"
)

func text(m prompt.Message) string {
	var b strings.Builder
	for _, p := range m.Pieces {
		b.WriteString(p.Text)
	}
	return b.String()
}

func TestCompose(t *testing.T) {
	messages := prompt.Compose(prompt.Composition{
		System:  " You work for the harbour. \n",
		History: prompt.Turns([]prompt.Utterance{{Role: "user", Text: "Hello "}, {Role: "assistant", Text: "Hello."}, {Role: "user", Text: "Which crane?"}}),
		Tools:   []prompt.ToolResult{{Name: "tide\ntable", Content: "high at six"}},
		Evidence: []prompt.Item{
			{Marker: 1, Title: "Cranes", Heading: []string{"Cranes", "North\nquay"}, Text: "\nCrane C-2 lifts 14 tonnes.\n"},
			{Marker: 2, Text: "Bay 6."},
		},
		Question: "How much does C-2 lift?\n",
	})
	rules := text(messages[0])
	if !strings.HasPrefix(rules, "You work for the harbour.\n\nAnswer ") || messages[0].Pieces[0].Part.Kind != prompt.System {
		t.Errorf("system message %q", rules)
	}
	roles := ""
	for _, m := range messages {
		roles += m.Role + " "
	}
	if roles != "system user assistant user " {
		t.Errorf("roles %s", roles)
	}
	want := []prompt.Piece{
		{Text: "Which crane?", Part: prompt.Part{Kind: prompt.History, Index: 1}},
		{Text: "\n\n"},
		{Text: "Tool results:\n\n"},
		{Text: "```\n"},
		{Text: "tide table\nhigh at six", Part: prompt.Part{Kind: prompt.Tools}},
		{Text: "\n```\n\n"},
		{Text: "Documents:\n\n"},
		{Text: "[1]\n```\n"},
		{Text: "Cranes > North quay\nCrane C-2 lifts 14 tonnes.", Part: prompt.Part{Kind: prompt.Evidence}},
		{Text: "\n```\n\n"},
		{Text: "[2]\n```\n"},
		{Text: "Bay 6.", Part: prompt.Part{Kind: prompt.Evidence, Index: 1}},
		{Text: "\n```\n\n"},
		{Text: "Question:\n"},
		{Text: "How much does C-2 lift?", Part: prompt.Part{Kind: prompt.Question}},
	}
	if diff := cmp.Diff(want, messages[3].Pieces); diff != "" {
		t.Errorf("last message (-want +got):\n%s", diff)
	}
}

func TestFoldSystem(t *testing.T) {
	messages := prompt.Compose(prompt.Composition{System: "Be kind.", Question: "Why?", History: []prompt.Turn{{{Role: "user", Text: "A"}, {Role: "assistant", Text: "B"}}}})
	folded := prompt.FoldSystem(messages)
	if len(folded) != 3 || text(folded[0]) != text(messages[0])+"\n\nA" || text(folded[2]) != "Why?" {
		t.Errorf("folded to %+v", folded)
	}
	if text(messages[1]) != "A" {
		t.Errorf("the messages given were changed to %+v", messages)
	}
	if again := prompt.FoldSystem(folded); len(again) != 3 {
		t.Errorf("folded twice to %+v", again)
	}
}

func TestComposeKorean(t *testing.T) {
	messages := prompt.Compose(prompt.Composition{Language: "ko", Question: "열쇠는 어디에 있나?", Evidence: []prompt.Item{{Marker: 1, Text: "열쇠는 서랍에 있다."}}})
	if s := text(messages[0]); !strings.Contains(s, "문서에 없으면") || strings.Contains(s, "Answer") {
		t.Errorf("system message %q", s)
	}
	if s := text(messages[1]); !strings.HasPrefix(s, "문서:\n\n[1]\n") || !strings.HasSuffix(s, "질문:\n열쇠는 어디에 있나?") {
		t.Errorf("user message %q", s)
	}
}

// No text ends its own block: read line by line, as a reader of fences does,
// every foreign line is inside one.
func TestFencesHold(t *testing.T) {
	line := rapid.SampledFrom([]string{"```", "````", "`````` md", "[2]", "Question:", "</context>", "~~~", "plain", "", "a ``` b"})
	foreign := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(line, 0, 8).Draw(t, "lines"), "\n")
	})
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOfN(foreign, 1, 4).Draw(t, "items")
		c := prompt.Composition{Question: "end", Tools: []prompt.ToolResult{{Name: "t", Content: foreign.Draw(t, "tool")}}}
		for i, s := range items {
			c.Evidence = append(c.Evidence, prompt.Item{Marker: i + 1, Title: foreign.Draw(t, "title"), Text: s})
		}
		want := "Tool results:\n\nDocuments:\n\n"
		for i := range items {
			want += fmt.Sprintf("[%d]\n\n", i+1)
		}
		want = strings.Replace(want, "Tool results:\n\n", "Tool results:\n\n\n", 1) + "Question:\nend"
		if got := outside(text(prompt.Compose(c)[1])); got != want {
			t.Fatalf("outside the fences stands %q, want %q", got, want)
		}
	})
}

// outside drops fenced blocks by Markdown's rule: a block ends at a line of at
// least as many backticks as it began with.
func outside(s string) string {
	var out []string
	open := 0
	for _, l := range strings.Split(s, "\n") {
		ticks := len(l) - len(strings.TrimLeft(l, "`"))
		switch {
		case open == 0 && ticks >= 3:
			open = ticks
		case open > 0 && ticks >= open && strings.TrimSpace(l[ticks:]) == "":
			open = 0
		case open == 0:
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}

// spacer is a tokenizer of single bytes that, like SentencePiece, puts a space
// before the first word after a control token, written <x>.
type spacer struct{}

func (spacer) Encode(dst []int32, s string) []int32 {
	if s != "" && (len(dst) == 0 || dst[len(dst)-1] < 0) {
		dst = append(dst, ' ')
	}
	for i := range len(s) {
		dst = append(dst, int32(s[i]))
	}
	return dst
}

func (sp spacer) EncodeScaffold(dst []int32, s string) []int32 {
	for {
		before, rest, ok := strings.Cut(s, "<x>")
		dst = sp.Encode(dst, before)
		if !ok {
			return dst
		}
		dst, s = append(dst, -1), rest
	}
}

func TestTokenize(t *testing.T) {
	question := prompt.Part{Kind: prompt.Question}
	ids, per := prompt.Tokenize([]prompt.Segment{
		{Text: "<x>ab", Scaffold: true},
		{Text: "<x>", Part: question},
		{Text: "<x>", Scaffold: true, Part: question}, // scaffold is template wherever it stands
		{Text: "c", Part: question},
	}, spacer{})
	want := []int32{-1, ' ', 'a', 'b', '<', 'x', '>', -1, ' ', 'c'}
	if diff := cmp.Diff(want, ids); diff != "" {
		t.Errorf("ids (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[prompt.Part]int{{}: 5, question: 5}, per); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
}

func TestTokenizeSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		segments := rapid.SliceOf(rapid.Custom(func(t *rapid.T) prompt.Segment {
			return prompt.Segment{
				Text:     strings.Join(rapid.SliceOf(rapid.SampledFrom([]string{"<x>", "a", " "})).Draw(t, "text"), ""),
				Part:     prompt.Part{Kind: prompt.Kind(rapid.IntRange(0, 5).Draw(t, "kind")), Index: rapid.IntRange(0, 2).Draw(t, "index")},
				Scaffold: rapid.Bool().Draw(t, "scaffold"),
			}
		})).Draw(t, "segments")
		ids, per := prompt.Tokenize(segments, spacer{})
		sum := 0
		for _, n := range per {
			sum += n
		}
		if sum != len(ids) {
			t.Fatalf("parts sum to %d of %d ids", sum, len(ids))
		}
	})
}

func TestTurns(t *testing.T) {
	u := func(role string) prompt.Utterance { return prompt.Utterance{Role: role} }
	got := prompt.Turns([]prompt.Utterance{u("assistant"), u("user"), u("assistant"), u("assistant"), u("user"), u("user")})
	want := []prompt.Turn{{u("assistant")}, {u("user"), u("assistant"), u("assistant")}, {u("user")}, {u("user")}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("turns (-want +got):\n%s", diff)
	}
}

func ExampleCompose() {
	messages := prompt.Compose(prompt.Composition{
		Evidence: []prompt.Item{{Marker: 1, Title: "Tides", Text: "High water is at six."}},
		Question: "When is high water?",
	})
	for _, p := range messages[1].Pieces {
		fmt.Print(p.Text)
	}
	// Output:
	// Documents:
	//
	// [1]
	// ```
	// Tides
	// High water is at six.
	// ```
	//
	// Question:
	// When is high water?
}
