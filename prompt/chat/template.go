package chat

import (
	"errors"
	"fmt"
	"time"

	"ragd/prompt"
)

// Template is a parsed chat template. It is safe for concurrent use.
type Template struct{ body body }

// Input is what a template renders.
type Input struct {
	Messages            []prompt.Message
	AddGenerationPrompt bool
	// BOS and EOS are the spellings of those tokens; empty where there is none.
	BOS, EOS string
	// Tools are tool schemas in any form that encodes as JSON; a json.RawMessage
	// keeps its order of keys.
	Tools any
	// Extra are further variables, such as enable_thinking.
	Extra map[string]any
	// Now is the time that strftime_now formats.
	Now time.Time
}

// Parse reads a template. Errors are of type *Error and name the line.
func Parse(source string) (*Template, error) {
	if len(source) > maxSource {
		return nil, &Error{Line: 1, Construct: "template", Err: fmt.Errorf("%d bytes, at most %d: %w", len(source), maxSource, ErrLimit)}
	}
	toks, err := lex(source)
	if err != nil {
		return nil, err
	}
	p := &parser{toks: toks}
	b, _, err := p.body()
	if err != nil {
		return nil, err
	}
	return &Template{b}, nil
}

// Render gives the prompt in segments. Text of message pieces, tools and extra
// values is content, everything else scaffold; pieces are never merged with
// one another, so their tokens can be counted apart.
func (t *Template) Render(in Input) ([]prompt.Segment, error) {
	vars, err := variables(in)
	if err != nil {
		return nil, err
	}
	out, err := t.render(vars, in.Now)
	if err != nil {
		return nil, err
	}
	return segments(out), nil
}

func (t *Template) render(vars map[string]value, now time.Time) (text, error) {
	in := &interp{out: &builder{}, now: now, vars: &frame{vars: vars}}
	if _, err := t.body.exec(in); err != nil {
		return text{}, at(1, "template", err)
	}
	return in.out.text(), nil
}

// segments cuts a text where the origin changes.
func segments(t text) []prompt.Segment {
	out := make([]prompt.Segment, 0, len(t.spans))
	from := 0
	for _, sp := range t.spans {
		out = append(out, prompt.Segment{Text: t.s[from:sp.end], Part: sp.org.part, Scaffold: !sp.org.content})
		from = sp.end
	}
	return out
}

// errRole is returned for a role that is not a plain word; roles are written
// as scaffold, so nothing else may be one.
var errRole = errors.New("role must be 1 to 32 lower-case letters")

func variables(in Input) (map[string]value, error) {
	vars := map[string]value{}
	pieces := 0
	for k, x := range in.Extra {
		pieces++
		v, err := fromGo(x, origin{content: true, piece: pieces})
		if err != nil {
			return nil, fmt.Errorf("extra variable %q: %w", k, err)
		}
		vars[k] = v
	}
	if in.Tools != nil {
		pieces++
		v, err := fromGo(in.Tools, origin{content: true, part: prompt.Part{Kind: prompt.Tools}, piece: pieces})
		if err != nil {
			return nil, fmt.Errorf("tools: %w", err)
		}
		vars["tools"] = v
	}
	messages := &list{}
	for i, m := range in.Messages {
		if !plainRole(m.Role) {
			return nil, fmt.Errorf("message %d: role %q: %w", i, m.Role, errRole)
		}
		var b builder
		for _, p := range m.Pieces {
			pieces++
			b.addString(p.Text, origin{content: true, part: p.Part, piece: pieces})
		}
		d := &dict{}
		d.put("role", scaffold(m.Role))
		d.put("content", b.text())
		messages.items = append(messages.items, d)
	}
	vars["messages"] = messages
	vars["add_generation_prompt"] = in.AddGenerationPrompt
	vars["bos_token"] = scaffold(in.BOS)
	vars["eos_token"] = scaffold(in.EOS)
	return vars, nil
}

func plainRole(role string) bool {
	for _, r := range role {
		if (r < 'a' || r > 'z') && r != '_' {
			return false
		}
	}
	return role != "" && len(role) <= 32
}
