// Package encode turns texts into vectors, and pairs of question and passage into
// scores: it tokenises, packs texts of like length into batches without padding,
// and runs them through an encoder of package model.
package encode

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"

	"ragd/inference/gguf"
	"ragd/inference/model"
	"ragd/inference/tokenizer"
)

// Config tunes an encoder.
type Config struct {
	// BatchTokens is the most tokens in one pass through the model, and so the
	// longest that a query waits behind passages; 0 means 512. A text longer
	// than that gets a pass of its own.
	BatchTokens int
	// Urgency is told before each pass whether a query waits for it, and during a
	// pass over passages when a query comes: a backend that shares its machine can
	// hurry then and give way otherwise. One call at a time; it must not block. May
	// be nil.
	Urgency func(urgent bool)
}

const defaultBatchTokens = 512

// Encoder embeds texts. It is safe for concurrent use: calls take turns batch by
// batch, queries before passages.
type Encoder struct {
	model  *model.BERT
	config model.EncoderConfig
	tokens tokenizer.Tokenizer
	batch  int
	id     string
	gate   gate
}

// Embedding is one encoded text.
type Embedding struct {
	// Vector has Dim values; it is scaled to length one where the model's recipe
	// says so, as all embedding models known here do. Nil when Err is set.
	Vector []float32
	// Tokens is what the model was given: prefix and special tokens included.
	Tokens int
	// States are there where they were wanted.
	States *States
	// Err is a *TextError when this text could not be encoded.
	Err error
}

// Open loads the embedding model at path, a GGUF file or a Hugging Face folder,
// with its tokenizer. The encoder owns ops from then on; on an error the caller
// still does. Errors are those of the packages model, gguf, safetensors and
// tokenizer.
func Open(ctx context.Context, path string, ops model.Ops, cfg Config) (*Encoder, error) {
	m, t, err := open(ctx, path, ops, &cfg)
	if err != nil {
		return nil, err
	}
	e := &Encoder{model: m, config: m.Config(), tokens: t, batch: cfg.BatchTokens, gate: gate{urgency: cfg.Urgency}}
	if e.config.Pooling != model.PoolMean && e.config.Pooling != model.PoolCLS {
		return nil, fmt.Errorf("%w: %s makes no embeddings (pooling %d)", model.ErrConfig, path, e.config.Pooling)
	}
	e.id = e.identity()
	return e, nil
}

// open loads a model with its tokenizer, fills in cfg and holds the tokenizer to
// the model.
func open(ctx context.Context, path string, ops model.Ops, cfg *Config) (*model.BERT, tokenizer.Tokenizer, error) {
	if cfg.BatchTokens < 0 {
		return nil, nil, fmt.Errorf("encode: batches of %d tokens", cfg.BatchTokens)
	}
	if cfg.BatchTokens == 0 {
		cfg.BatchTokens = defaultBatchTokens
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, nil, fmt.Errorf("open model: %w", err)
	}
	load := openFile
	if info.IsDir() {
		load = openFolder
	}
	m, t, err := load(ctx, path, ops)
	if err != nil {
		return nil, nil, err
	}
	if n := m.Config().Vocab; t.Size() > n {
		return nil, nil, fmt.Errorf("%w: %s: the tokenizer has %d tokens, the model %d", model.ErrConfig, path, t.Size(), n)
	}
	return m, t, nil
}

func openFile(ctx context.Context, path string, ops model.Ops) (*model.BERT, tokenizer.Tokenizer, error) {
	f, err := gguf.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	t, err := tokenizer.FromGGUF(f)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	m, err := model.LoadEncoder(ctx, f, ops)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return m, t, nil
}

func openFolder(ctx context.Context, dir string, ops model.Ops) (*model.BERT, tokenizer.Tokenizer, error) {
	t, err := folderTokenizer(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", dir, err)
	}
	m, err := model.LoadEncoderFolder(ctx, dir, ops)
	if err != nil {
		return nil, nil, err
	}
	return m, t, nil
}

// folderTokenizer reads tokenizer.json, or vocab.txt in older folders.
func folderTokenizer(dir string) (tokenizer.Tokenizer, error) {
	config, err := os.ReadFile(filepath.Join(dir, "tokenizer_config.json"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(dir, "tokenizer.json"))
	if err == nil {
		return tokenizer.FromJSON(data, config)
	}
	if !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	if data, err = os.ReadFile(filepath.Join(dir, "vocab.txt")); err != nil {
		return nil, err
	}
	return tokenizer.FromVocabTxt(data, config)
}

// identity names weights and recipe: the model's name and a hash of what changes
// its vectors, as far as the container tells and whatever backend computes them.
func (e *Encoder) identity() string {
	c, h := &e.config, fnv.New32a()
	fmt.Fprintf(h, "%q %d %d %d %d %d %v %q %q", c.Name, c.Layers, c.Width, c.FeedForward, c.Vocab, c.Pooling, c.Unit, c.QueryPrefix, c.PassagePrefix)
	return fmt.Sprintf("%s@%08x", strings.ReplaceAll(c.Name, " ", "-"), h.Sum32())
}

// Model identifies the weights and the recipe: vectors of two models with
// different names must not be compared.
func (e *Encoder) Model() string { return e.id }

// Dim is the number of values in a vector.
func (e *Encoder) Dim() int { return e.config.Width }

// MaxTokens is the longest text, with prefix and special tokens.
func (e *Encoder) MaxTokens() int { return e.config.Context }

// CountPassage is the number of tokens a passage takes, as EmbedPassages gives
// it to the model.
func (e *Encoder) CountPassage(text string) int {
	return len(tokenizer.Raw(e.tokens, e.config.PassagePrefix+text))
}

// Close waits for the batches in line and frees the model. Batches that come later
// fail with ErrClosed.
func (e *Encoder) Close() error {
	if err := e.gate.close(); err != nil {
		return err
	}
	return e.model.Close()
}
