package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	"ragd/inference/engine"
)

// body is a request to /completions. The fields after stream_options are not
// OpenAI's but vLLM's and llama.cpp's; they are sent only when they say
// something.
type body struct {
	Model         string        `json:"model"`
	Prompt        []int32       `json:"prompt"`
	MaxTokens     int           `json:"max_tokens"`
	Temperature   float32       `json:"temperature"`
	TopP          float32       `json:"top_p,omitempty"`
	Seed          uint64        `json:"seed"`
	Stop          []string      `json:"stop,omitempty"`
	Logprobs      int           `json:"logprobs"`
	Stream        bool          `json:"stream"`
	StreamOptions streamOptions `json:"stream_options"`

	TopK              int     `json:"top_k,omitempty"`
	MinP              float32 `json:"min_p,omitempty"`
	RepetitionPenalty float32 `json:"repetition_penalty,omitempty"` // vLLM
	RepeatPenalty     float32 `json:"repeat_penalty,omitempty"`     // llama.cpp
	IgnoreEOS         bool    `json:"ignore_eos,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// seedMask keeps a seed within what every server reads, 31 bits.
const seedMask = 1<<31 - 1

func newBody(model string, r *engine.Request) body {
	p := r.Sampling
	return body{
		Model: model, Prompt: r.Tokens, MaxTokens: r.MaxTokens,
		Temperature: p.Temperature, TopP: p.TopP, Seed: p.Seed & seedMask,
		Stop: r.Stop, Logprobs: 1,
		Stream: true, StreamOptions: streamOptions{IncludeUsage: true},
		TopK: p.TopK, MinP: p.MinP,
		RepetitionPenalty: p.RepetitionPenalty, RepeatPenalty: p.RepetitionPenalty,
		IgnoreEOS: r.IgnoreEOS,
	}
}

// chunk is one event of the server.
type chunk struct {
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage"`
	Error   *struct {
		Message string `json:"message"`
	} `json:"error"`
}

type choice struct {
	Text  string `json:"text"`
	Delta struct {
		Content string `json:"content"`
	} `json:"delta"` // of a chat
	FinishReason string          `json:"finish_reason"`
	StopReason   json.RawMessage `json:"stop_reason"` // vLLM: the stop text that was met
	Logprobs     struct {
		Tokens  []float64 `json:"token_logprobs"` // OpenAI, vLLM
		Content []struct {
			Logprob float64 `json:"logprob"`
		} `json:"content"` // llama.cpp
	} `json:"logprobs"`
}

// usage is the server's own count.
type usage struct {
	PromptTokens     int `json:"prompt_tokens"`
	CompletionTokens int `json:"completion_tokens"`
	Details          struct {
		CachedTokens int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// reason is why the server ended an answer, or "" for a word it does not know.
func (c *choice) reason() engine.Reason {
	switch c.FinishReason {
	case "length":
		return engine.ReasonLength
	case "stop":
		if len(c.StopReason) > 0 && c.StopReason[0] == '"' {
			return engine.ReasonStopString
		}
		return engine.ReasonStop
	}
	return ""
}

// StatusError is an answer of the server that is not 200.
type StatusError struct {
	Code    int
	Message string // the beginning of its body
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("remote: status %d: %s", e.Code, e.Message)
}

// maxMessage is how much of an error body is kept.
const maxMessage = 500

func (c *Client) post(ctx context.Context, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("remote: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	if c.cfg.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.cfg.Key)
	}
	resp, err := c.cfg.HTTP.Do(req)
	if err != nil {
		return nil, fmt.Errorf("remote: %w", err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // 0, unknown, when absent or a date
		return nil, &engine.QueueFullError{Wait: time.Duration(max(0, seconds)) * time.Second}
	}
	message, _ := io.ReadAll(io.LimitReader(resp.Body, maxMessage)) // the status says enough without it
	return nil, &StatusError{Code: resp.StatusCode, Message: string(message)}
}
