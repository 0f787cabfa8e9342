package remote

import (
	"context"
	"encoding/json"

	"ragd/inference/engine"
)

// Message is one message of a conversation that the server renders itself.
type Message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// chatBody is a request to /chat/completions.
type chatBody struct {
	body
	Prompt   *struct{}       `json:"prompt,omitempty"` // hides body.Prompt
	Logprobs *struct{}       `json:"logprobs,omitempty"`
	Messages []Message       `json:"messages"`
	Format   json.RawMessage `json:"response_format,omitempty"`
}

// SubmitChat is Submit for a server that renders and counts by itself, through
// /chat/completions: messages go instead of r.Tokens, whose number is an estimate,
// and the usage is the server's. format, which may be nil, goes along as
// response_format.
func (c *Client) SubmitChat(ctx context.Context, r engine.Request, messages []Message, format json.RawMessage) (*engine.Stream, error) {
	if err := c.check(&r); err != nil {
		return nil, err
	}
	b := newBody(c.model, &r)
	// Only what every such server knows.
	b.RepetitionPenalty, b.RepeatPenalty, b.IgnoreEOS, b.TopK, b.MinP = 0, 0, false, 0, 0
	data, err := json.Marshal(chatBody{body: b, Messages: messages, Format: format})
	if err != nil {
		return nil, err
	}
	return c.start(ctx, &r, "/chat/completions", data, true)
}
