package remote

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"ragd/inference/engine"
)

// answer is one request under way. It belongs to its goroutine.
type answer struct {
	feed   *engine.Feed
	count  func(text string) int // tokens of text
	prompt int                   // tokens sent
	counts bool                  // the server's count of them stands
	stall  *time.Timer           // ends the answer when it fires
	within time.Duration         // what it is set to
	limit  int                   // bytes of text accepted
	body   io.ReadCloser         // the server's answer; nil before it came
	leave  func()                // gives its place back

	text   strings.Builder
	usage  *usage
	reason engine.Reason
	sure   engine.Confidence
	times  engine.Times
}

// maxBytes bounds the text of an answer: a server that sends more than any
// vocabulary could mean by so many tokens is not believed.
func maxBytes(tokens int) int { return 1024 * (min(tokens, 1<<20) + 1) }

// maxLine bounds one line of the stream.
const maxLine = 1 << 20

// run sends the request and feeds the answer. The time a server takes to say
// that it has begun is part of prefill.
func (a *answer) run(ctx context.Context, send func() (*http.Response, error)) {
	a.times.Scheduled = time.Now()
	a.feed.Scheduled(engine.Scheduled{At: a.times.Scheduled})
	defer a.release()
	err := a.read(send)
	// Whoever has read the last event finds the place free.
	a.leave()
	usage := a.tokens()
	switch {
	case err == nil:
		a.feed.Finish("", engine.Done{Reason: a.reason, Usage: usage, Times: a.times, Confidence: a.sure})
	case errors.Is(context.Cause(ctx), ErrStalled):
		a.feed.Finish("", engine.Failed{Err: fmt.Errorf("%w for %v", ErrStalled, a.within), Usage: usage, Times: a.times})
	case ctx.Err() != nil:
		a.feed.Finish("", engine.Done{Reason: engine.ReasonCancelled, Usage: usage, Times: a.times, Confidence: a.sure})
	default:
		a.feed.Finish("", engine.Failed{Err: fmt.Errorf("%w: %w", ErrServer, err), Usage: usage, Times: a.times})
	}
}

// read goes through the server's events up to [DONE].
func (a *answer) read(send func() (*http.Response, error)) error {
	resp, err := send()
	if err != nil {
		return err
	}
	a.body = resp.Body
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if a.stall != nil {
			a.stall.Reset(a.within)
		}
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data:"))
		if !ok {
			continue // a blank line, a comment, another field
		}
		data = bytes.TrimSpace(data)
		if string(data) == "[DONE]" {
			return a.check()
		}
		if err := a.event(data); err != nil {
			return err
		}
	}
	return fmt.Errorf("remote: the answer broke off: %w", errors.Join(lines.Err(), io.ErrUnexpectedEOF))
}

const (
	// mostRest is how many bytes may follow [DONE], and restTime how long they may take.
	mostRest = 4 << 10
	restTime = time.Second
)

// release gives the connection back. It can serve the next request when its answer was
// read to the end, which comes a moment after the reader of this one was served.
func (a *answer) release() {
	if a.body == nil {
		return
	}
	if a.stall != nil {
		a.stall.Reset(restTime)
	}
	// What is read, and whether it ends in an error, changes nothing any more.
	_, _ = io.CopyN(io.Discard, a.body, mostRest)
	_ = a.body.Close()
}

func (a *answer) event(data []byte) error {
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return fmt.Errorf("remote: event that is no JSON: %w", err)
	}
	if c.Error != nil {
		return fmt.Errorf("remote: the server failed: %s", c.Error.Message)
	}
	if c.Usage != nil {
		a.usage = c.Usage
	}
	for i := range c.Choices {
		if err := a.choice(&c.Choices[i]); err != nil {
			return err
		}
	}
	return nil
}

func (a *answer) choice(c *choice) error {
	for _, l := range c.Logprobs.Tokens {
		a.sure.Add(l)
	}
	for _, l := range c.Logprobs.Content {
		a.sure.Add(l.Logprob)
	}
	if c.FinishReason != "" {
		if a.reason = c.reason(); a.reason == "" {
			return fmt.Errorf("remote: the answer ended with %q", c.FinishReason)
		}
	}
	if c.Text += c.Delta.Content; c.Text == "" {
		return nil
	}
	if a.text.Len()+len(c.Text) > a.limit {
		return fmt.Errorf("remote: the answer is longer than %d bytes", a.limit)
	}
	a.times.Last = time.Now()
	if a.times.FirstToken.IsZero() {
		a.times.FirstToken = a.times.Last
	}
	a.text.WriteString(c.Text)
	a.feed.Push(c.Text)
	return nil
}

// check holds the server to its word once it has said all.
func (a *answer) check() error {
	if a.reason == "" {
		return errors.New("remote: the answer ended without a finish_reason")
	}
	if !a.counts && a.usage != nil && a.usage.PromptTokens != a.prompt {
		return fmt.Errorf("remote: the server counted %d prompt tokens where %d were sent: is the tokenizer that of its model?",
			a.usage.PromptTokens, a.prompt)
	}
	return nil
}

// tokens is the server's count, or that of the own tokenizer when the server
// did not come to say.
func (a *answer) tokens() engine.Usage {
	u := engine.Usage{InputTokens: a.prompt}
	if a.usage != nil {
		if a.counts {
			u.InputTokens = a.usage.PromptTokens
		}
		u.OutputTokens, u.CachedTokens = a.usage.CompletionTokens, a.usage.Details.CachedTokens
		return u
	}
	if a.text.Len() > 0 {
		u.OutputTokens = a.count(a.text.String())
	}
	return u
}
