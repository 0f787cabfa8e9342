package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"ragd/inference/cpu"
	"ragd/inference/encode"
)

// EmbedConfig says what to measure.
type EmbedConfig struct {
	Model   string // file or folder
	Threads int
	Texts   []string // passages; empty: built-in ones
	Pairs   int
	// Peer is a command and its arguments. It reads texts from standard input, one
	// JSON string a line, embeds each, and prints one line of JSON to standard output:
	// {"texts_per_s": number}, without the time it took to start. It runs once for the
	// passages, and once for the queries, which it must embed one by one.
	Peer     []string
	Commit   string
	Progress func(string)
}

// builtIn is how many passages are made of the built-in ones.
const builtIn = 180

// RunEmbed measures passages a second, tokens a second and the latency of single
// queries, each in turn with the peer.
func RunEmbed(ctx context.Context, cfg EmbedConfig) (Report, error) {
	if len(cfg.Texts) == 0 {
		all := slices.Concat(passages, koreanPassages)
		for i := range builtIn {
			cfg.Texts = append(cfg.Texts, fmt.Sprintf("%d. %s", i+1, all[i%len(all)]))
		}
	}
	cfg.Progress("memory and arithmetic")
	machine, err := Measure(cfg.Threads)
	if err != nil {
		return Report{}, err
	}
	ops, err := cpu.New(cpu.Config{Threads: cfg.Threads})
	if err != nil {
		return Report{}, err
	}
	e, err := encode.Open(ctx, cfg.Model, ops, encode.Config{})
	if err != nil {
		return Report{}, errors.Join(err, ops.Close())
	}
	b := embedBench{cfg: cfg, encoder: e}
	tests, err := b.run(ctx)
	return Report{Commit: cfg.Commit, Machine: machine, Tests: tests}, errors.Join(err, e.Close())
}

type embedBench struct {
	cfg     EmbedConfig
	encoder *encode.Encoder
}

func (b *embedBench) run(ctx context.Context) ([]Test, error) {
	if _, _, err := b.passages(ctx); err != nil { // warms up
		return nil, err
	}
	var passages, tokens, query pairs
	for i := range b.cfg.Pairs {
		b.cfg.Progress(fmt.Sprintf("%d passages and %d queries, %d of %d", len(b.cfg.Texts), len(queries), i+1, b.cfg.Pairs))
		perSecond, tokensPerSecond, err := b.passages(ctx)
		if err != nil {
			return nil, err
		}
		theirs, err := b.peer(ctx, b.cfg.Texts)
		if err != nil {
			return nil, err
		}
		passages.add(perSecond, theirs)
		tokens.add(tokensPerSecond, 0)
		latency, err := b.query(ctx)
		if err != nil {
			return nil, err
		}
		if theirs, err = b.peer(ctx, queries); err != nil {
			return nil, err
		}
		query.add(latency, milliseconds(theirs))
	}
	return []Test{passages.test("passages", "passages/s"), tokens.test("tokens", "tok/s"), query.test("query", "ms")}, nil
}

// milliseconds is the time of one text at a rate; 0 stays 0.
func milliseconds(perSecond float64) float64 {
	if perSecond == 0 {
		return 0
	}
	return 1e3 / perSecond
}

func (b *embedBench) passages(ctx context.Context) (perSecond, tokensPerSecond float64, err error) {
	began := time.Now()
	results, err := b.encoder.EmbedPassages(ctx, b.cfg.Texts)
	if err != nil {
		return 0, 0, err
	}
	took := time.Since(began).Seconds()
	tokens := 0
	for _, r := range results {
		tokens += r.Tokens
	}
	return float64(len(results)) / took, float64(tokens) / took, nil
}

// query is the median latency of a single query in milliseconds.
func (b *embedBench) query(ctx context.Context) (float64, error) {
	const rounds = 4
	var took []float64
	for range rounds {
		for _, q := range queries {
			began := time.Now()
			if _, _, err := b.encoder.EmbedQuery(ctx, q); err != nil {
				return 0, err
			}
			took = append(took, time.Since(began).Seconds()*1e3)
		}
	}
	return SpreadOf(took).Median, nil
}

// peer runs the peer's command over texts and returns its texts a second; 0 when
// there is no peer.
func (b *embedBench) peer(ctx context.Context, texts []string) (float64, error) {
	if len(b.cfg.Peer) == 0 {
		return 0, nil
	}
	var in bytes.Buffer
	lines := json.NewEncoder(&in)
	for _, t := range texts {
		if err := lines.Encode(t); err != nil {
			return 0, err
		}
	}
	out, err := output(ctx, in.Bytes(), b.cfg.Peer[0], b.cfg.Peer[1:]...)
	if err != nil {
		return 0, err
	}
	var result struct {
		TextsPerS float64 `json:"texts_per_s"`
	}
	if err := json.Unmarshal(out, &result); err != nil || result.TextsPerS <= 0 {
		return 0, fmt.Errorf("%s: want {\"texts_per_s\": number}, got %.200q", b.cfg.Peer[0], out)
	}
	return result.TextsPerS, nil
}
