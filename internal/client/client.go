// Package client talks to a running ragd.
package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"ragd/internal/answer"
)

// Client is one server.
type Client struct {
	base string
	key  string
	http *http.Client
}

// maxLine bounds one event or line of progress; a result with explain holds the
// whole prompt.
const maxLine = 64 << 20

// New returns a client of the server at base (http://host:port). key may be empty.
func New(base, key string) *Client {
	return &Client{base: strings.TrimRight(base, "/"), key: key, http: &http.Client{}}
}

// ForAddr is New for a listen address; an address for all interfaces is reached
// by loopback.
func ForAddr(addr, key string) *Client {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return New("http://"+addr, key)
	}
	if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
		host = "127.0.0.1"
	}
	return New("http://"+net.JoinHostPort(host, port), key)
}

// Base is the server's address.
func (c *Client) Base() string { return c.base }

// Alive reports whether a ragd answers at the address within the time given.
func (c *Client) Alive(ctx context.Context, within time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	var health struct{ Status, Version string }
	return c.get(ctx, "/healthz", &health) == nil && health.Status == "alive"
}

// Ready returns why the server cannot answer now, or nil.
func (c *Client) Ready(ctx context.Context) error {
	return c.get(ctx, "/readyz", &struct{}{})
}

// Ask streams an answer into sink and returns the whole of it.
func (c *Client) Ask(ctx context.Context, req answer.Request, sink answer.Sink) (*answer.Result, error) {
	req.Stream = true
	resp, err := c.do(ctx, http.MethodPost, "/ask", req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return readEvents(resp.Body, sink)
}

// Search retrieves without generating.
func (c *Client) Search(ctx context.Context, req answer.SearchRequest) (*answer.SearchResult, error) {
	resp, err := c.do(ctx, http.MethodPost, "/v1/search", req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var out answer.SearchResult
	return &out, json.NewDecoder(resp.Body).Decode(&out)
}

func (c *Client) get(ctx context.Context, path string, out any) error {
	resp, err := c.do(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(io.LimitReader(resp.Body, maxLine)).Decode(out)
}

func (c *Client) do(ctx context.Context, method, path string, body any) (*http.Response, error) {
	var payload io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		payload = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, payload)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		return nil, readError(resp)
	}
	return resp, nil
}

type errorDetail struct {
	Code    answer.Code `json:"code"`
	Message string      `json:"message"`
	Field   string      `json:"field"`
}

func (d *errorDetail) err() error {
	return &answer.Error{Code: d.Code, Message: d.Message, Field: d.Field}
}

func readError(resp *http.Response) error {
	var body struct {
		Error *errorDetail `json:"error"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&body); err != nil || body.Error == nil {
		return fmt.Errorf("the server answered %s", resp.Status)
	}
	return body.Error.err()
}

// readEvents reads the Server-Sent Events of /ask to their end.
func readEvents(r io.Reader, sink answer.Sink) (*answer.Result, error) {
	lines := scanner(r)
	event := ""
	for lines.Scan() {
		line := lines.Text()
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			event = name
			continue
		}
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		res, err := dispatch(event, []byte(data), sink)
		if res != nil || err != nil {
			return res, err
		}
	}
	return nil, errors.Join(errors.New("the server closed the stream before the answer was done"), lines.Err())
}

func dispatch(event string, data []byte, sink answer.Sink) (*answer.Result, error) {
	var fields struct {
		Position int
		Text     string
		Error    *errorDetail
	}
	switch event {
	case "done":
		var res answer.Result
		return &res, json.Unmarshal(data, &res)
	case "sources":
		var s answer.Sources
		if err := json.Unmarshal(data, &s); err != nil {
			return nil, err
		}
		sink.Sources(s)
		return nil, nil
	case "citation":
		var c answer.Citation
		if err := json.Unmarshal(data, &c); err != nil {
			return nil, err
		}
		sink.Citation(c)
		return nil, nil
	}
	if err := json.Unmarshal(data, &fields); err != nil {
		return nil, fmt.Errorf("event %q: %w", event, err)
	}
	switch {
	case event == "queued":
		sink.Queued(fields.Position)
	case event == "delta":
		sink.Delta(fields.Text)
	case fields.Error != nil:
		return nil, fields.Error.err()
	}
	return nil, nil
}

func scanner(r io.Reader) *bufio.Scanner {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 64<<10), maxLine)
	return s
}
