// Package config is ragd's settings: one struct filled from defaults, then a
// file, then the environment, then flags, and checked as a whole.
package config

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"runtime"
	"slices"
	"time"
)

// Config is everything an operator can set. The zero value is not useful; start
// from Default or Load.
type Config struct {
	// Home is the data folder; empty for the default (modelstore.Home).
	Home      string    `koanf:"home"`
	Server    Server    `koanf:"server"`
	Database  Database  `koanf:"database"`
	Models    Models    `koanf:"models"`
	Inference Inference `koanf:"inference"`
	Ingest    Ingest    `koanf:"ingest"`
	Retrieve  Retrieve  `koanf:"retrieve"`
	Rerank    Rerank    `koanf:"rerank"`
	Prompt    Prompt    `koanf:"prompt"`
	Telemetry Telemetry `koanf:"telemetry"`
	Cost      Cost      `koanf:"cost"`
}

// Server is the HTTP side.
type Server struct {
	Addr string `koanf:"addr"`
	// MaxBodyBytes bounds a request body.
	MaxBodyBytes int64 `koanf:"max_body_bytes"`
	// RequestTimeout bounds one request from receipt to last byte.
	RequestTimeout time.Duration `koanf:"request_timeout"`
	// ShutdownTimeout is how long running answers may finish after a signal.
	ShutdownTimeout time.Duration `koanf:"shutdown_timeout"`
	// Keys are the SHA-256 hashes (hex) of the keys that may call. They are
	// needed as soon as Addr is not loopback.
	Keys []string `koanf:"keys"`
	// DatabaseKeys says that there are keys in the database (`ragd keys add`), so
	// that Addr may be another than loopback without Keys.
	DatabaseKeys bool `koanf:"database_keys"`
}

// Database is where documents live.
type Database struct {
	// URL names an outside PostgreSQL; empty for the private one.
	URL      string `koanf:"url"`
	MaxConns int    `koanf:"max_conns"`
}

// Models are catalogue names or paths.
type Models struct {
	Answer    string `koanf:"answer"`
	Embedding string `koanf:"embedding"`
	// Rerank is the cross-encoder, needed when rerank.scorer is cross.
	Rerank string `koanf:"rerank"`
}

// Inference is the engine.
type Inference struct {
	// Device is "cpu", "cuda:0" (or another number), or "auto": the first device
	// where there is one that this build can use, else the CPU. Of several, as in
	// "cuda:0,cuda:1", the answer model's layers are spread over all; encoders use the first.
	Device string `koanf:"device"`
	// DeviceLayers is how many of the answer model's layers go to the device, the last ones
	// with the output matrix: LayersAll, of which a model that does not fit is refused;
	// LayersAuto, as many as fit; or a number. The others are computed by the CPU.
	DeviceLayers string `koanf:"device_layers"`
	// CUDALibrary is the path of the CUDA driver's library; empty for the system's.
	CUDALibrary string `koanf:"cuda_library"`
	// Threads is how many threads compute; 0 for one a core.
	Threads int `koanf:"threads"`
	// KVCacheTokens is how many tokens of KV cache are reserved at start, for
	// all running answers together.
	KVCacheTokens int `koanf:"kv_cache_tokens"`
	// KVCacheType is what keys and values are kept as: CacheF16, CacheQ8 in 17/32 of its
	// memory or, on devices, CacheFP8 in 33/64.
	KVCacheType string `koanf:"kv_cache_type"`
	// KVOffloadTokens is how many tokens of prefixes that had to leave a device's cache
	// are kept in pinned host memory; 0 for none. The CPU has no use for it.
	KVOffloadTokens int `koanf:"kv_offload_tokens"`
	MaxQueue        int `koanf:"max_queue"`
	MaxRunning      int `koanf:"max_running"`
	// StepTokens bounds one step, PieceTokens one prefill piece.
	StepTokens    int  `koanf:"step_tokens"`
	PieceTokens   int  `koanf:"piece_tokens"`
	NoKVCache     bool `koanf:"no_kv_cache"`
	NoPrefixCache bool `koanf:"no_prefix_cache"`
	// NoLookup turns prompt-lookup speculation off.
	NoLookup bool `koanf:"no_lookup"`
	// NoPreemption starts a request only when the cache has room for its longest answer,
	// so that none pauses for others, and more wait.
	NoPreemption bool `koanf:"no_preemption"`
	// MaxGapMS is how long running answers may wait for their next token, in
	// milliseconds, while another prompt is read; 0 for 2.5 times the time of a
	// step without a prompt.
	MaxGapMS int `koanf:"max_gap_ms"`
	// Remote answers in place of the engine of this process.
	Remote Remote `koanf:"remote"`
}

// Ingest is the document road.
type Ingest struct {
	ChunkTokens   int `koanf:"chunk_tokens"`
	OverlapTokens int `koanf:"overlap_tokens"`
	// Sentences is "apart" (each sentence has a vector of its own) or "off".
	Sentences    string `koanf:"sentences"`
	MaxFileBytes int64  `koanf:"max_file_bytes"`
	// ParseTimeout bounds reading and cutting one file.
	ParseTimeout time.Duration `koanf:"parse_timeout"`
}

// Retrieve is search and what follows it.
type Retrieve struct {
	TopK int `koanf:"top_k"`
	// MinScore is what one chunk must reach for an answer at all: its cosine and 0.3 of
	// the share of the question's words that it holds.
	MinScore float64 `koanf:"min_score"`
	// MinChunkScore is the cosine that every chunk presented must reach. It alone
	// decides where the chunks hold next to no word of the question, as when it is
	// in another language.
	MinChunkScore float64 `koanf:"min_chunk_score"`
	// MinWords is the share of the question's words from which on a chunk is presented
	// whatever its cosine.
	MinWords float64 `koanf:"min_words"`
	// Candidates is how many chunks of each side, by meaning and by words, are fused.
	Candidates int `koanf:"candidates"`
	// Fusion is "convex" (scores) or "rank" (reciprocal ranks); DenseWeight is
	// the weight of meaning in it, words have the rest.
	Fusion      string  `koanf:"fusion"`
	DenseWeight float64 `koanf:"dense_weight"`
	// Rewrite is how a follow-up question becomes one that can be searched for:
	// "model" (the answer model writes it), "words" (the words of the question before
	// are added), "off", or "auto": model, but words where the model is small.
	Rewrite string `koanf:"rewrite"`
	// ExactBelow is the collection size under which search is exact.
	ExactBelow int `koanf:"exact_below"`
}

// Rerank is how the retrieved chunks are ordered anew.
type Rerank struct {
	// Scorer is "sentence" (the best sentence of each chunk), "late" (late interaction
	// with the states of the chunks' tokens, which ingest then keeps: about 100 KB a
	// chunk), "cross" (the cross-encoder models.rerank) or "none".
	Scorer string `koanf:"scorer"`
	// Timeout bounds a rerank by a cross-encoder or by late interaction: what it does not reach keeps the
	// order of the search.
	Timeout time.Duration `koanf:"timeout"`
}

// The values of Rerank.Scorer.
const (
	ScoreSentence = "sentence"
	ScoreLate     = "late"
	ScoreCross    = "cross"
	ScoreNone     = "none"
)

// Prompt is what the model reads and writes.
type Prompt struct {
	System        string `koanf:"system"`
	ContextTokens int    `koanf:"context_tokens"`
	AnswerTokens  int    `koanf:"answer_tokens"`
	MaxChunks     int    `koanf:"max_chunks"`
	// JoinNeighbours fills what is left of the budget with the chunks beside those
	// presented, as far as headings and tokens allow.
	JoinNeighbours bool `koanf:"join_neighbours"`
}

// Telemetry is logs and content; exporters follow the OTEL_ variables.
type Telemetry struct {
	LogLevel      string `koanf:"log_level"`
	RecordContent bool   `koanf:"record_content"`
	// TrustTraceparent lets requests join the trace that their caller names; else
	// they link to it.
	TrustTraceparent bool `koanf:"trust_traceparent"`
}

// Default is what a fresh machine starts with.
func Default() Config {
	return Config{
		Server: Server{
			Addr: "127.0.0.1:8080", MaxBodyBytes: 1 << 20,
			RequestTimeout: 10 * time.Minute, ShutdownTimeout: 30 * time.Second, Keys: []string{},
		},
		Database: Database{MaxConns: 8},
		Models:   Models{Answer: "smollm2-135m-instruct", Embedding: "multilingual-e5-small"},
		Inference: Inference{
			Device: DeviceAuto, DeviceLayers: LayersAll, Threads: runtime.NumCPU(), KVCacheTokens: 16384, KVCacheType: CacheF16, MaxQueue: 64, MaxRunning: 8,
			StepTokens: 512, PieceTokens: 256,
			Remote: Remote{Window: 8192, Stall: time.Minute},
		},
		Ingest:   Ingest{ChunkTokens: 256, OverlapTokens: 64, Sentences: "apart", MaxFileBytes: 64 << 20, ParseTimeout: 2 * time.Minute},
		Retrieve: Retrieve{TopK: 20, MinScore: 0.90, MinChunkScore: 0.80, MinWords: 0.25, Candidates: 100, Fusion: "convex", DenseWeight: 0.5, Rewrite: "auto", ExactBelow: 20000},
		Rerank:   Rerank{Scorer: ScoreSentence, Timeout: time.Second},
		Prompt:   Prompt{ContextTokens: 1024, AnswerTokens: 256, MaxChunks: 6},
		Telemetry: Telemetry{
			LogLevel: "info",
		},
		Cost: Cost{Currency: "USD"},
	}
}

// FieldError names the setting that is wrong and what it may be.
type FieldError struct{ Field, Reason string }

func (e *FieldError) Error() string { return fmt.Sprintf("config: %s: %s", e.Field, e.Reason) }

type bound struct {
	field       string
	value       int64
	least, most int64
}

// Validate checks every field; the error names the first that is wrong.
func (c Config) Validate() error {
	for _, b := range c.bounds() {
		if b.value < b.least || b.value > b.most {
			return &FieldError{b.field, fmt.Sprintf("%d is not between %d and %d", b.value, b.least, b.most)}
		}
	}
	for _, o := range []struct {
		field, value string
		allowed      []string
	}{
		{"retrieve.fusion", c.Retrieve.Fusion, []string{"convex", "rank"}},
		{"retrieve.rewrite", c.Retrieve.Rewrite, []string{"auto", "model", "words", "off"}},
		{"inference.kv_cache_type", c.Inference.KVCacheType, []string{CacheF16, CacheQ8, CacheFP8}},
		{"rerank.scorer", c.Rerank.Scorer, []string{ScoreSentence, ScoreLate, ScoreCross, ScoreNone}},
		{"ingest.sentences", c.Ingest.Sentences, []string{"apart", "off"}},
		{"telemetry.log_level", c.Telemetry.LogLevel, []string{"debug", "info", "warn", "error"}},
	} {
		if !slices.Contains(o.allowed, o.value) {
			return &FieldError{o.field, fmt.Sprintf("%q is not one of %v", o.value, o.allowed)}
		}
	}
	if err := c.Cost.check(); err != nil {
		return err
	}
	if err := c.Inference.checkDevice(); err != nil {
		return err
	}
	if err := c.Inference.Remote.check(); err != nil {
		return err
	}
	for _, k := range c.Server.Keys {
		if sum, err := hex.DecodeString(k); err != nil || len(sum) != sha256.Size {
			return &FieldError{"server.keys", "each must be the SHA-256 of a key in hex (64 digits)"}
		}
	}
	switch {
	case c.Server.Addr == "":
		return &FieldError{"server.addr", "is empty"}
	case c.Models.Answer == "" || c.Models.Embedding == "":
		return &FieldError{"models", "answer and embedding must both be named"}
	case c.Rerank.Scorer == ScoreCross && c.Models.Rerank == "":
		return &FieldError{"models.rerank", "must name a cross-encoder when rerank.scorer is cross"}
	case c.Retrieve.MinScore < -1 || c.Retrieve.MinScore > 1.3:
		return &FieldError{"retrieve.min_score", fmt.Sprintf("%g is not between -1 and 1.3", c.Retrieve.MinScore)}
	case c.Retrieve.MinChunkScore < -1 || c.Retrieve.MinChunkScore > 1:
		return &FieldError{"retrieve.min_chunk_score", fmt.Sprintf("%g is no cosine (-1 to 1)", c.Retrieve.MinChunkScore)}
	case !fraction(c.Retrieve.MinWords):
		return &FieldError{"retrieve.min_words", fmt.Sprintf("%g is not between 0 and 1", c.Retrieve.MinWords)}
	case !fraction(c.Retrieve.DenseWeight):
		return &FieldError{"retrieve.dense_weight", fmt.Sprintf("%g is not between 0 and 1", c.Retrieve.DenseWeight)}
	case c.Ingest.OverlapTokens >= c.Ingest.ChunkTokens:
		return &FieldError{"ingest.overlap_tokens", fmt.Sprintf("%d must be smaller than chunk_tokens (%d)", c.Ingest.OverlapTokens, c.Ingest.ChunkTokens)}
	}
	return nil
}

func fraction(v float64) bool { return v >= 0 && v <= 1 }

func (c Config) bounds() []bound {
	return []bound{
		{"server.max_body_bytes", c.Server.MaxBodyBytes, 1 << 10, 64 << 20},
		{"server.request_timeout", int64(c.Server.RequestTimeout), int64(time.Second), int64(24 * time.Hour)},
		{"server.shutdown_timeout", int64(c.Server.ShutdownTimeout), 0, int64(time.Hour)},
		{"database.max_conns", int64(c.Database.MaxConns), 2, 1000},
		{"inference.remote.window", int64(c.Inference.Remote.Window), 256, 1 << 24},
		{"inference.remote.stall", int64(c.Inference.Remote.Stall), int64(100 * time.Millisecond), int64(time.Hour)},
		{"inference.threads", int64(c.Inference.Threads), 0, 1024},
		{"inference.kv_cache_tokens", int64(c.Inference.KVCacheTokens), 256, 1 << 26},
		{"inference.kv_offload_tokens", int64(c.Inference.KVOffloadTokens), 0, 1 << 26},
		{"inference.max_queue", int64(c.Inference.MaxQueue), 1, 1 << 16},
		{"inference.max_running", int64(c.Inference.MaxRunning), 1, 1024},
		{"inference.step_tokens", int64(c.Inference.StepTokens), 16, 1 << 16},
		{"inference.max_gap_ms", int64(c.Inference.MaxGapMS), 0, 60_000},
		{"inference.piece_tokens", int64(c.Inference.PieceTokens), 16, 1 << 16},
		{"ingest.chunk_tokens", int64(c.Ingest.ChunkTokens), 32, 8192},
		{"ingest.overlap_tokens", int64(c.Ingest.OverlapTokens), 0, 8191},
		{"ingest.max_file_bytes", c.Ingest.MaxFileBytes, 1, 1 << 32},
		{"ingest.parse_timeout", int64(c.Ingest.ParseTimeout), int64(time.Second), int64(time.Hour)},
		{"retrieve.top_k", int64(c.Retrieve.TopK), 1, 1000},
		{"retrieve.candidates", int64(c.Retrieve.Candidates), 1, 1000},
		{"retrieve.exact_below", int64(c.Retrieve.ExactBelow), 0, 1 << 31},
		{"rerank.timeout", int64(c.Rerank.Timeout), int64(time.Millisecond), int64(time.Hour)},
		{"prompt.context_tokens", int64(c.Prompt.ContextTokens), 1, 1 << 20},
		{"prompt.answer_tokens", int64(c.Prompt.AnswerTokens), 1, 1 << 17},
		{"prompt.max_chunks", int64(c.Prompt.MaxChunks), 1, 1000},
	}
}
