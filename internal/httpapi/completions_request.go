package httpapi

import (
	"encoding/json"
	"fmt"
	"strings"

	"ragd/internal/answer"
)

// checkCompletion refuses what asks for more than ragd does, naming the field.
func (s *server) checkCompletion(r *completionRequest) error {
	on := func(v *bool) bool { return v != nil && *v }
	nonzero := func(v *float64) bool { return v != nil && *v != 0 }
	_, documents := retrieval(r.Model)
	for _, f := range []struct {
		field, reason string
		set           bool
	}{
		{"model", "is missing", r.Model == ""},
		{"n", "only 1 is supported", r.N != nil && *r.N != 1},
		{"logprobs", "log probabilities are not returned", on(r.Logprobs)},
		{"top_logprobs", "log probabilities are not returned", r.TopLogprobs != nil && *r.TopLogprobs != 0},
		{"presence_penalty", "only 0 is supported; repetition_penalty is", nonzero(r.PresencePenalty)},
		{"frequency_penalty", "only 0 is supported; repetition_penalty is", nonzero(r.FrequencyPenalty)},
		{"logit_bias", "is not supported", len(r.LogitBias) > 0},
		{"tools", "function calling is not supported", len(r.Tools) > 0},
		{"modalities", "only text is supported", len(r.Modalities) > 1 || len(r.Modalities) == 1 && r.Modalities[0] != "text"},
		{"stream_options", "is given, but stream is false", r.StreamOptions != nil && !r.Stream},
		{"max_completion_tokens", "is given beside max_tokens", r.MaxTokens != nil && r.MaxCompletionTokens != nil && *r.MaxTokens != *r.MaxCompletionTokens},
		{"ragd", "only a model that answers from documents takes it", r.Ragd != nil && !documents},
	} {
		if f.set {
			return unsupported(f.field, f.reason)
		}
	}
	if r.MaxTokens == nil {
		r.MaxTokens = r.MaxCompletionTokens
	}
	for i := range r.Messages {
		if r.Messages[i].Role == "developer" {
			r.Messages[i].Role = "system"
		}
	}
	if documents {
		return nil
	}
	return s.checkModel(r.Model, RoleAnswers)
}

func (r *completionRequest) sampling() *answer.Sampling {
	return &answer.Sampling{
		Temperature: r.Temperature, TopP: r.TopP, TopK: r.TopK, MinP: r.MinP, RepetitionPenalty: r.RepetitionPenalty, Seed: r.Seed, Stop: r.Stop,
	}
}

// chat is the request without retrieval.
func (r *completionRequest) chat() answer.ChatRequest {
	out := answer.ChatRequest{MaxTokens: r.MaxTokens, Sampling: r.sampling(), ResponseFormat: r.ResponseFormat}
	for i := range r.Messages {
		out.Messages = append(out.Messages, answer.Message{Role: r.Messages[i].Role, Content: r.Messages[i].text()})
	}
	return out
}

// text is what the message says, calls of tools included.
func (m *completionMessage) text() string {
	lines := []string{}
	if m.Content != "" {
		lines = append(lines, string(m.Content))
	}
	for _, t := range m.ToolCalls {
		call, err := json.Marshal(map[string]string{"name": t.Function.Name, "arguments": t.Function.Arguments})
		if err == nil {
			lines = append(lines, string(call))
		}
	}
	return strings.Join(lines, "\n")
}

// ask is the request with retrieval: the last message is the question, what stands
// before it the history, and tools and the system say what they say.
func (r *completionRequest) ask(collection string) (answer.Request, error) {
	last := len(r.Messages) - 1
	for last >= 0 && r.Messages[last].Role == "tool" {
		last--
	}
	if last < 0 || r.Messages[last].Role != "user" {
		return answer.Request{}, unsupported("messages", "the last one must be the user's question, with nothing behind it but results of tools")
	}
	out := answer.Request{
		Question: r.Messages[last].text(), Collection: collection, Sampling: r.sampling(), ResponseFormat: r.ResponseFormat, Route: answer.RouteChat,
	}
	if o := r.Ragd; o != nil {
		out.Filters, out.TopK, out.MaxChunks, out.Budget, out.AnswerMode, out.Explain = o.Filters, o.TopK, o.MaxChunks, o.Budget, o.AnswerMode, o.Explain
	}
	if err := r.reserve(&out); err != nil {
		return out, err
	}
	var system []string
	for i := range r.Messages {
		m := &r.Messages[i]
		switch m.Role {
		case "system":
			system = append(system, m.text())
		case "tool":
			out.ToolResults = append(out.ToolResults, answer.ToolResult{Name: m.toolName(r.Messages[:i]), Content: m.text()})
		case "user", "assistant":
			if i != last {
				out.History = append(out.History, answer.Turn{Role: m.Role, Content: m.text()})
			}
		default:
			return out, unsupported(fmt.Sprintf("messages[%d].role", i), fmt.Sprintf("%q is not system, developer, user, assistant or tool", m.Role))
		}
	}
	out.System = strings.Join(system, "\n\n")
	return out, answer.ValidateText("messages", out.System)
}

// reserve is max_tokens in ragd's words.
func (r *completionRequest) reserve(out *answer.Request) error {
	if r.MaxTokens == nil {
		return nil
	}
	if *r.MaxTokens < 1 || *r.MaxTokens > answer.MaxAnswerTokens {
		return unsupported("max_tokens", fmt.Sprintf("%d is not between 1 and %d", *r.MaxTokens, answer.MaxAnswerTokens))
	}
	b := answer.Budget{}
	if out.Budget != nil {
		b = *out.Budget
	}
	b.AnswerTokens = r.MaxTokens
	out.Budget = &b
	return nil
}

// toolName is the name of the tool whose result a message is: its own, or that of
// the call it answers.
func (m *completionMessage) toolName(before []completionMessage) string {
	if m.Name != "" {
		return m.Name
	}
	for _, b := range before {
		for _, t := range b.ToolCalls {
			if t.ID == m.ToolCallID && t.ID != "" {
				return t.Function.Name
			}
		}
	}
	return "tool"
}
