package peer

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
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// server is one llama-server on a port of its own, on loopback.
type server struct {
	cmd  *exec.Cmd
	base string
	done chan error // its end
}

const (
	// startWithin bounds loading a model, stopWithin ending the program.
	startWithin = 5 * time.Minute
	stopWithin  = 10 * time.Second
	// maxBody bounds an answer of the server and a line of its stream.
	maxBody = 16 << 20
	// keptLog is how much of what it says is kept, to tell why it did not start.
	keptLog = 4 << 10
)

func startServer(ctx context.Context, cfg Config, model string, flags ...string) (*server, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	log := &tail{}
	s := &server{base: "http://127.0.0.1:" + port, done: make(chan error, 1)}
	s.cmd = exec.CommandContext(ctx, cfg.Server, append([]string{
		"-m", model, "-t", strconv.Itoa(cfg.Threads), "--host", "127.0.0.1", "--port", port,
	}, flags...)...)
	s.cmd.Stdout, s.cmd.Stderr = log, log
	s.cmd.Cancel = func() error { return s.cmd.Process.Signal(os.Interrupt) }
	s.cmd.WaitDelay = stopWithin
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { s.done <- s.cmd.Wait() }()
	if err := s.ready(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("%s with %s: %w: …%s", cfg.Server, model, err, log.text()), s.stop())
	}
	return s, nil
}

func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// ready waits until the model is loaded.
func (s *server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if resp, err := s.request(ctx, http.MethodGet, "/health", nil); err == nil {
			return resp.Close()
		}
		select {
		case err := <-s.done:
			s.done <- err
			return fmt.Errorf("ended while it started (%v)", err)
		case <-ctx.Done():
			return fmt.Errorf("was not ready: %w", context.Cause(ctx))
		case <-tick.C:
		}
	}
}

// stop ends the program, kindly first.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(os.Interrupt); errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	select {
	case <-s.done:
		return nil
	case <-time.After(stopWithin):
		return s.cmd.Process.Kill()
	}
}

func (s *server) request(ctx context.Context, method, path string, body any) (io.ReadCloser, error) {
	payload, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, method, s.base+path, bytes.NewReader(payload))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		defer resp.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 300))
		return nil, fmt.Errorf("%s: %s: %s", path, resp.Status, text)
	}
	return resp.Body, nil
}

// embedding is the unit vector of a text.
func (s *server) embedding(ctx context.Context, text string) ([]float32, error) {
	body, err := s.request(ctx, http.MethodPost, "/embedding", map[string]any{"content": text})
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var out []struct {
		Embedding [][]float32 `json:"embedding"`
	}
	if err := json.NewDecoder(io.LimitReader(body, maxBody)).Decode(&out); err != nil {
		return nil, err
	}
	if len(out) != 1 || len(out[0].Embedding) != 1 {
		return nil, fmt.Errorf("%d embeddings for one text", len(out))
	}
	return out[0].Embedding[0], nil
}

// completion is one streamed answer.
type completion struct {
	first, last   time.Time
	input, output int
}

// complete writes exactly n tokens after a prompt, greedily. Prompts share their
// beginning with the one before, and the server keeps it, as it does by default.
func (s *server) complete(ctx context.Context, prompt string, n int) (c completion, err error) {
	body, err := s.request(ctx, http.MethodPost, "/completion", map[string]any{
		"prompt": prompt, "n_predict": n, "temperature": 0, "repeat_penalty": 1, "ignore_eos": true, "cache_prompt": true, "stream": true,
	})
	if err != nil {
		return c, err
	}
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxBody)
	for lines.Scan() {
		data, ok := strings.CutPrefix(lines.Text(), "data: ")
		if !ok {
			continue
		}
		if c.first.IsZero() {
			c.first = time.Now()
		}
		var e struct {
			Stop      bool `json:"stop"`
			Evaluated int  `json:"tokens_evaluated"`
			Predicted int  `json:"tokens_predicted"`
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return c, fmt.Errorf("event %.100q: %w", data, err)
		}
		if e.Stop {
			c.last, c.input, c.output = time.Now(), e.Evaluated, e.Predicted
			return c, nil
		}
	}
	return c, errors.Join(errors.New("the stream ended without a last event"), lines.Err())
}
