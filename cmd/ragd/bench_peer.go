package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ragd/internal/answer"
	"ragd/internal/app"
	"ragd/internal/bench"
	"ragd/internal/bench/peer"
	"ragd/internal/tenant"
)

// peerFlags say what bench ask runs in turn with.
type peerFlags struct {
	server, model, embedding string
	pairs                    int
}

func (p *peerFlags) add(f *pflag.FlagSet) {
	f.StringVar(&p.server, "against", "", "path of llama-server, to answer the same questions in turn with")
	f.StringVar(&p.model, "peer-model", "", "answer model of llama-server (default the same file)")
	f.StringVar(&p.embedding, "peer-embedding", "", "embedding model of llama-server, GGUF (default the same file)")
	f.IntVar(&p.pairs, "pairs", 20, "how many questions count in a comparison")
}

func (p *peerFlags) check() error {
	if p.pairs < 1 || p.pairs > 100_000 {
		return fmt.Errorf("bench ask: --pairs is %d, it must be between 1 and 100000", p.pairs)
	}
	if p.server == "" && (p.model != "" || p.embedding != "") {
		return errors.New("bench ask: --peer-model and --peer-embedding need --against")
	}
	return nil
}

// against runs ragd and the peer in turn.
func (b *askBench) against(cmd *cobra.Command, o *options, backend asker) (err error) {
	pipeline, machine, err := b.startPeer(cmd, o)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, pipeline.Close()) }()
	report, err := bench.RunAgainst(cmd.Context(), bench.AgainstConfig{
		Commit: version, Machine: machine, Questions: b.run.Questions, Pairs: b.peer.pairs, Progress: progressTo(cmd.ErrOrStderr()),
		Ragd: func(ctx context.Context, question string) (bench.Reply, error) {
			return b.reply(ctx, backend, question)
		},
		Peer: func(ctx context.Context, question string, like bench.Reply) (bench.Reply, error) {
			a, err := pipeline.Ask(ctx, peer.Question{Text: question, Prompt: like.Prompt, OutputTokens: like.OutputTokens})
			return bench.Reply{InputTokens: a.InputTokens, OutputTokens: a.OutputTokens, Search: a.Embed + a.Search, TTFT: a.TTFT, Total: a.Total}, err
		},
	})
	if err != nil {
		return err
	}
	return printBench(cmd.OutOrStdout(), report, o.json)
}

// peerWindow is the longest prompt with its answer, in tokens.
const peerWindow = 8192

func (b *askBench) startPeer(cmd *cobra.Command, o *options) (*peer.Pipeline, bench.Machine, error) {
	cfg, err := o.config()
	if err != nil {
		return nil, bench.Machine{}, err
	}
	p := peer.Config{
		Server: b.peer.server, Model: b.peer.model, Embedding: b.peer.embedding, Threads: cfg.Inference.Threads, Context: peerWindow,
		Tenant: tenant.Default, Collection: b.collection, Candidates: cfg.Retrieve.Candidates,
	}
	for path, name := range map[*string]string{&p.Model: cfg.Models.Answer, &p.Embedding: cfg.Models.Embedding} {
		if *path == "" {
			if *path, err = app.ModelPath(cmd.Context(), cfg, name, nil); err != nil {
				return nil, bench.Machine{}, err
			}
		}
	}
	if p.Database, err = app.DatabaseURL(cfg); err != nil {
		return nil, bench.Machine{}, err
	}
	machine, err := bench.Measure(p.Threads)
	if err != nil {
		return nil, machine, err
	}
	pipeline, err := peer.Start(cmd.Context(), p)
	return pipeline, machine, err
}

// reply asks ragd and takes the times as its client sees them.
func (b *askBench) reply(ctx context.Context, backend asker, question string) (bench.Reply, error) {
	watch := &stopwatch{began: time.Now()}
	res, err := backend.Ask(ctx, answer.Request{Question: question, Collection: b.collection, AnswerMode: b.mode, Explain: true}, watch)
	if err != nil {
		return bench.Reply{}, err
	}
	r := bench.Reply{
		InputTokens: res.Usage.InputTokens, OutputTokens: res.Usage.OutputTokens,
		Search: res.Timings.Rows()[0].Duration, TTFT: watch.first, Total: time.Since(watch.began),
	}
	var prompt strings.Builder
	for _, part := range res.Explain.Prompt {
		io.WriteString(&prompt, part.Text)
	}
	r.Prompt = prompt.String()
	return r, nil
}

// stopwatch is a sink that notes when the first text came.
type stopwatch struct {
	silent
	began time.Time
	first time.Duration
}

func (s *stopwatch) Delta(string) {
	if s.first == 0 {
		s.first = time.Since(s.began)
	}
}
