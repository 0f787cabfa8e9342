package peer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Config says what the pipeline is made of.
type Config struct {
	// Server is the path of llama-server.
	Server string
	// Model and Embedding are GGUF files.
	Model, Embedding string
	// Threads is how many each server computes with, Context how many tokens an
	// answer with its prompt may have.
	Threads, Context int
	// Database is the connection string of the PostgreSQL that holds the chunks;
	// Tenant and Collection say which.
	Database, Tenant, Collection string
	// Candidates is how many chunks each side of the search takes.
	Candidates int
}

// Pipeline is a running peer. It answers one question at a time.
type Pipeline struct {
	cfg             Config
	embed, generate *server
	db              *pgx.Conn
}

// Question is what is asked, with the prompt to read and the length to write.
type Question struct {
	Text, Prompt string
	OutputTokens int
}

// Answer says how long it took. TTFT and Total are from the question on.
type Answer struct {
	Embed, Search, TTFT, Total time.Duration
	InputTokens, OutputTokens  int
	Chunks                     []int64
}

// Start brings both servers up and lays the chunks out for the search.
func Start(ctx context.Context, cfg Config) (p *Pipeline, err error) {
	p = &Pipeline{cfg: cfg}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("peer: %w", err), p.Close())
			p = nil
		}
	}()
	if p.generate, err = startServer(ctx, cfg, cfg.Model, "-np", "1", "-c", fmt.Sprint(cfg.Context)); err != nil {
		return p, err
	}
	if p.embed, err = startServer(ctx, cfg, cfg.Embedding, "-np", "1", "--embedding", "--pooling", "mean"); err != nil {
		return p, err
	}
	if p.db, err = pgx.Connect(ctx, cfg.Database); err != nil {
		return p, err
	}
	return p, layOut(ctx, p.db, cfg)
}

// Close stops the servers and leaves the database as it was.
func (p *Pipeline) Close() error {
	var errs []error
	for _, s := range []*server{p.generate, p.embed} {
		if s != nil {
			errs = append(errs, s.stop())
		}
	}
	if p.db != nil {
		errs = append(errs, p.db.Close(context.Background()))
	}
	return errors.Join(errs...)
}

// queryPrefix is what the e5 models want before a question.
const queryPrefix = "query: "

// Ask answers one question.
func (p *Pipeline) Ask(ctx context.Context, q Question) (a Answer, err error) {
	began := time.Now()
	vector, err := p.embed.embedding(ctx, queryPrefix+q.Text)
	if err != nil {
		return a, fmt.Errorf("peer: embed: %w", err)
	}
	a.Embed = time.Since(began)
	if a.Chunks, err = search(ctx, p.db, vector, q.Text, p.cfg.Candidates); err != nil {
		return a, fmt.Errorf("peer: search: %w", err)
	}
	a.Search = time.Since(began) - a.Embed
	c, err := p.generate.complete(ctx, q.Prompt, q.OutputTokens)
	if err != nil {
		return a, fmt.Errorf("peer: generate: %w", err)
	}
	a.TTFT, a.Total = c.first.Sub(began), c.last.Sub(began)
	a.InputTokens, a.OutputTokens = c.input, c.output
	return a, nil
}
