package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"ragd/inference/engine"
	"ragd/inference/tokenizer"
)

// Config has the tunables of a client; a zero value takes the default.
type Config struct {
	// Key is sent as a bearer token when not empty.
	Key string
	// Window is the most tokens prompt and answer may have together; 0 leaves
	// it to the server to refuse.
	Window int
	// Stall is how long the server may send nothing (one minute).
	Stall time.Duration
	// MaxRequests is how many answers may be under way at once (32).
	MaxRequests int
	// HTTP does the requests; it must not bound the time of a whole answer.
	HTTP *http.Client
}

// Client sends requests to one model of one server. Its methods are safe for
// concurrent use.
type Client struct {
	base  string
	host  string
	port  int
	model string
	tok   tokenizer.Tokenizer
	cfg   Config

	stop   context.Context // ends what runs when Close runs out of time
	cancel context.CancelFunc
	wg     sync.WaitGroup

	mu     sync.Mutex
	active int
	closed bool
}

// New makes a client for the model at base, such as http://127.0.0.1:8000/v1. tok may
// be nil for SubmitChat.
func New(base, model string, tok tokenizer.Tokenizer, cfg Config) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("remote: %q is no http or https address", base)
	}
	if cfg.MaxRequests < 0 || cfg.Window < 0 {
		return nil, fmt.Errorf("remote: MaxRequests %d and Window %d must not be negative", cfg.MaxRequests, cfg.Window)
	}
	if cfg.MaxRequests == 0 {
		cfg.MaxRequests = 32
	}
	if cfg.Stall <= 0 {
		cfg.Stall = time.Minute
	}
	if cfg.HTTP == nil {
		cfg.HTTP = &http.Client{}
	}
	port, err := portOf(u)
	if err != nil {
		return nil, fmt.Errorf("remote: %q: %w", base, err)
	}
	c := &Client{base: strings.TrimSuffix(base, "/"), host: u.Hostname(), port: port, model: model, tok: tok, cfg: cfg}
	c.stop, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// portOf is the port that an address names, else that of its scheme.
func portOf(u *url.URL) (int, error) {
	switch {
	case u.Port() != "":
		port, err := strconv.ParseUint(u.Port(), 10, 16)
		return int(port), err
	case u.Scheme == "https":
		return 443, nil
	}
	return 80, nil
}

// Server is the host and port that requests go to.
func (c *Client) Server() (host string, port int) { return c.host, c.port }

// ErrServer is wrapped by whatever goes wrong with the server.
var ErrServer = errors.New("remote server")

// ErrStalled ends an answer of a server that sends nothing any more.
var ErrStalled = errors.New("remote: the server sends nothing")

// count is in the tokens of the own tokenizer, 0 where there is none.
func (c *Client) count(text string) int {
	if c.tok == nil {
		return 0
	}
	return len(c.tok.Encode(nil, text))
}

// Submit sends a request. It returns at once, with the errors of
// engine.Engine.Submit; what the server says arrives as events.
func (c *Client) Submit(ctx context.Context, r engine.Request) (*engine.Stream, error) {
	if err := c.check(&r); err != nil {
		return nil, err
	}
	body, err := json.Marshal(newBody(c.model, &r))
	if err != nil {
		return nil, err
	}
	return c.start(ctx, &r, "/completions", body, false)
}

// start sends a request on its way; counts says that the server's usage stands.
func (c *Client) start(ctx context.Context, r *engine.Request, path string, body []byte, counts bool) (*engine.Stream, error) {
	if err := c.enter(); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancelCause(ctx)
	cancel := func() { stop(nil) }
	feed := engine.NewFeed(cancel)
	feed.Queued(1)
	a := &answer{
		feed:   feed,
		count:  c.count,
		counts: counts,
		stall:  time.AfterFunc(c.cfg.Stall, func() { stop(ErrStalled) }),
		within: c.cfg.Stall,
		prompt: len(r.Tokens),
		limit:  maxBytes(r.MaxTokens),
		leave:  c.leave,
		times:  engine.Times{Submitted: time.Now()},
	}
	go func() {
		defer c.wg.Done()
		defer cancel()
		defer a.stall.Stop()
		defer context.AfterFunc(c.stop, cancel)()
		a.run(ctx, func() (*http.Response, error) { return c.post(ctx, path, body) })
	}()
	return feed.Stream(), nil
}

func (c *Client) check(r *engine.Request) error {
	switch {
	case len(r.Tokens) == 0:
		return fmt.Errorf("%w: the prompt has no tokens", engine.ErrInvalid)
	case r.MaxTokens < 1:
		return fmt.Errorf("%w: max tokens is %d, at least 1 is needed", engine.ErrInvalid, r.MaxTokens)
	case r.Sampling.Grammar != nil:
		return fmt.Errorf("%w: a grammar cannot be sent to a server", engine.ErrInvalid)
	}
	if err := r.Sampling.Validate(); err != nil {
		return fmt.Errorf("%w: sampling: %w", engine.ErrInvalid, err)
	}
	if c.cfg.Window > 0 {
		return r.CheckWindow(c.cfg.Window)
	}
	return nil
}

// enter takes a place.
func (c *Client) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return engine.ErrClosed
	}
	if c.active >= c.cfg.MaxRequests {
		return &engine.QueueFullError{Waiting: c.active, Limit: c.cfg.MaxRequests}
	}
	c.active++
	c.wg.Add(1)
	return nil
}

// leave gives a place back.
func (c *Client) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.active--
}

// Close lets answers finish until ctx ends, then cancels them.
func (c *Client) Close(ctx context.Context) error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	idle := make(chan struct{})
	go func() {
		c.wg.Wait()
		close(idle)
	}()
	defer c.cancel()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
	}
	c.cancel()
	<-idle
	return context.Cause(ctx)
}
