package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// LlamaBench is llama.cpp's llama-bench, or another that takes its flags and
// writes its JSON.
type LlamaBench struct {
	Path    string // the program
	Model   string // the GGUF file
	Threads int
	Flags   []string // further ones, such as -rtr 1
}

// measure runs one test once and returns tokens a second. The program warms up on
// its own.
func (p *LlamaBench) measure(ctx context.Context, s shape) (float64, error) {
	args := append([]string{
		"-m", p.Model, "-t", strconv.Itoa(p.Threads), "-p", strconv.Itoa(s.prompt), "-n", strconv.Itoa(s.generate),
		"-r", "1", "-o", "json",
	}, p.Flags...)
	if s.depth > 0 {
		args = append(args, "-d", strconv.Itoa(s.depth))
	}
	out, err := output(ctx, nil, p.Path, args...)
	if err != nil {
		return 0, err
	}
	return parseLlamaBench(out)
}

// parseLlamaBench reads the speed of the one test in llama-bench's JSON.
func parseLlamaBench(out []byte) (float64, error) {
	var rows []struct {
		AvgTS float64 `json:"avg_ts"`
	}
	if err := json.Unmarshal(out, &rows); err != nil {
		return 0, fmt.Errorf("llama-bench: %w", err)
	}
	if len(rows) != 1 || rows[0].AvgTS <= 0 {
		return 0, fmt.Errorf("llama-bench: want one result with a speed, got %d: %.200s", len(rows), out)
	}
	return rows[0].AvgTS, nil
}

// output runs a program and returns what it printed; its complaints are part of
// the error.
func output(ctx context.Context, stdin []byte, path string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Stdin = bytes.NewReader(stdin)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("%s: %w: %s", path, err, lastLine(exit.Stderr))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return out, nil
}

func lastLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}
