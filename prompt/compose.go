package prompt

import (
	"slices"
	"strconv"
	"strings"
)

// Composition is what a prompt is made from.
type Composition struct {
	// System is the operator's message; it comes before ragd's own rules.
	System string
	// History holds whole turns, oldest first.
	History []Turn
	// Tools are results that the caller already has.
	Tools []ToolResult
	// Evidence is in the order of the prompt.
	Evidence []Item
	Question string
	// Language is the code of the question's language; "ko" gives Korean
	// wording, anything else English.
	Language string
}

// Item is a piece of evidence. The answer cites it as [Marker].
type Item struct {
	Marker  int
	Title   string
	Heading []string // outermost first
	Text    string
}

// ToolResult is what a tool answered.
type ToolResult struct{ Name, Content string }

// Compose builds the messages: a system message with the rules, the history,
// and one user message with tool results, evidence and, last, the question.
//
// Every word of ragd's own is a Template piece; the operator's message is
// System, turn i of the history {History, i}, tool result i {Tools, i} and
// item i {Evidence, i}. Foreign text stands between fences of backticks that
// are longer than any run of them inside, so no document can end its block.
// Pieces neither begin nor end in white space where a template might trim it.
// Neighbours of one role become one message, since many templates insist that
// user and assistant take turns.
func Compose(c Composition) []Message {
	w := wordingFor(c.Language)
	messages := make([]Message, 0, len(c.History)*2+2)
	messages = append(messages, Message{Role: "system", Pieces: systemPieces(c.System, w)})
	for i, turn := range c.History {
		for _, u := range turn {
			p := Piece{Text: strings.TrimSpace(u.Text), Part: Part{Kind: History, Index: i}}
			messages = join(messages, Message{Role: u.Role, Pieces: []Piece{p}})
		}
	}
	return join(messages, Message{Role: "user", Pieces: userPieces(c, w)})
}

// join appends a message, to the last one where that has the same role.
func join(messages []Message, m Message) []Message {
	last := len(messages) - 1
	if messages[last].Role != m.Role {
		return append(messages, m)
	}
	messages[last].Pieces = append(append(messages[last].Pieces, glue("\n\n")), m.Pieces...)
	return messages
}

// FoldSystem puts the system message in front of the first user message, for
// the templates that refuse a system role.
func FoldSystem(messages []Message) []Message {
	if len(messages) < 2 || messages[0].Role != "system" {
		return messages
	}
	out := slices.Clone(messages[1:])
	for i, m := range out {
		if m.Role == "user" {
			out[i].Pieces = slices.Concat(messages[0].Pieces, []Piece{glue("\n\n")}, m.Pieces)
			return out
		}
	}
	return messages
}

func glue(text string) Piece { return Piece{Text: text, Part: Part{Kind: Template}} }

func systemPieces(system string, w wording) []Piece {
	system = strings.TrimSpace(system)
	if system == "" {
		return []Piece{glue(w.rules)}
	}
	return []Piece{{Text: system, Part: Part{Kind: System}}, glue("\n\n" + w.rules)}
}

func userPieces(c Composition, w wording) []Piece {
	var out []Piece
	if len(c.Tools) > 0 {
		out = append(out, glue(w.tools))
		for i, r := range c.Tools {
			text := oneLine(r.Name) + "\n" + strings.TrimSpace(r.Content)
			out = append(out, fenced("", text, Part{Kind: Tools, Index: i})...)
		}
	}
	if len(c.Evidence) > 0 {
		out = append(out, glue(w.documents))
		for i, it := range c.Evidence {
			out = append(out, it.Pieces(i)...)
		}
	}
	question := strings.TrimSpace(c.Question)
	if len(out) > 0 {
		out = append(out, glue(w.question))
	}
	return append(out, Piece{Text: question, Part: Part{Kind: Question}})
}

// Pieces is item i as it stands in the prompt: its marker and fences as
// Template, and between them one piece with title, heading path and text.
// Counting each piece gives what the item costs.
func (it Item) Pieces(i int) []Piece {
	return fenced("["+strconv.Itoa(it.Marker)+"]\n", it.body(), Part{Kind: Evidence, Index: i})
}

func (it Item) body() string {
	path := make([]string, 0, len(it.Heading)+1)
	for _, h := range append([]string{it.Title}, it.Heading...) {
		h = oneLine(h)
		// The title of a document is often its first heading, too.
		if h != "" && (len(path) == 0 || path[len(path)-1] != h) {
			path = append(path, h)
		}
	}
	text := strings.TrimSpace(it.Text)
	if len(path) == 0 {
		return text
	}
	return strings.Join(path, " > ") + "\n" + text
}

// fenced puts text between fences that it cannot contain.
func fenced(label, text string, part Part) []Piece {
	fence := strings.Repeat("`", max(3, longestRun(text, '`')+1))
	return []Piece{glue(label + fence + "\n"), {Text: text, Part: part}, glue("\n" + fence + "\n\n")}
}

func longestRun(s string, c byte) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != c {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// oneLine joins the words of s with single spaces.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
