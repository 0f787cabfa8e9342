package answer

import (
	"ragd/prompt/budget"
	"ragd/rerank"
	"ragd/retrieve"
	"ragd/telemetry"
	"ragd/telemetry/cost"
)

// Kinds of answers.
const (
	KindGenerated = "generated" // written by the model
	KindExtracted = "extracted" // sentences of the documents, word for word
	KindBoth      = "both"      // extracted sentences, then the model's own words
)

// Result is the answer body of POST /ask.
type Result struct {
	ID              string            `json:"id"`
	TraceID         string            `json:"trace_id"`
	Answer          string            `json:"answer"`
	Kind            string            `json:"answer_kind"`
	Refused         bool              `json:"refused"`
	FinishReason    string            `json:"finish_reason"`
	Model           string            `json:"model"`
	Citations       []Citation        `json:"citations"`
	Sources         Sources           `json:"sources"`
	Usage           Usage             `json:"usage"`
	Timings         telemetry.Timings `json:"timings"`
	FirstToken      *FirstToken       `json:"first_token,omitempty"`
	RetrievedChunks int               `json:"retrieved_chunks"`
	UsedChunks      int               `json:"used_chunks"`
	Explain         *Explain          `json:"explain,omitempty"`
}

// FirstToken is when the model's first token was to come and when it came, in
// milliseconds from the receipt of the question. It is absent when no model ran.
type FirstToken struct {
	AskedMS     float64 `json:"asked_ms,omitempty"`     // budget.ttft_ms
	PredictedMS float64 `json:"predicted_ms,omitempty"` // 0 while no prompt was measured
	ObservedMS  float64 `json:"observed_ms,omitempty"`
}

// Citation ties part of the answer to the chunk that supports it.
type Citation struct {
	Marker  int   `json:"marker"`
	ChunkID int64 `json:"chunk_id"`
	// Collection and Document say where the chunk is from.
	Collection string   `json:"collection"`
	Document   string   `json:"document"`
	Title      string   `json:"title"`
	Heading    []string `json:"heading"`
	Page       int      `json:"page,omitempty"`
	Quote      Quote    `json:"quote"`
}

// Quote is the part of the answer that a citation supports, in characters
// (Unicode code points) from its start.
type Quote struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// Source is a chunk as it is listed for the reader.
type Source struct {
	Marker     int      `json:"marker,omitempty"`
	ChunkID    int64    `json:"chunk_id"`
	Collection string   `json:"collection"`
	Document   string   `json:"document"`
	Title      string   `json:"title"`
	Heading    []string `json:"heading"`
	Page       int      `json:"page,omitempty"`
	Score      float32  `json:"score"`
	// Truncated: the only evidence was longer than the room and was cut at a sentence.
	Truncated bool `json:"truncated,omitempty"`
	// Sentences: the supporting sentences stand for the whole chunk.
	Sentences bool `json:"sentences,omitempty"`
	// Joined are the neighbours in the document whose text stands here, too.
	Joined []int64 `json:"joined,omitempty"`
	Text   string  `json:"text,omitempty"`
}

// Sources lists chunks by how far they came.
type Sources struct {
	Retrieved []Source `json:"retrieved"`
	Presented []Source `json:"presented"`
	Cited     []Source `json:"cited"`
}

// Usage is the token ledger and its totals.
type Usage struct {
	InputTokens  int `json:"input_tokens"`
	OutputTokens int `json:"output_tokens"`
	CachedTokens int `json:"cached_tokens"`
	// SavedTokens are those of the cached tokens that the order of the evidence gave.
	SavedTokens int           `json:"saved_tokens,omitempty"`
	Ledger      budget.Ledger `json:"ledger"`
	// Cost is absent where nothing has a price.
	Cost *cost.Cost `json:"cost,omitempty"`
	// Rewrite is what the question was searched as, where that is not its own words.
	Rewrite *Rewrite `json:"rewrite,omitempty"`
	// UnreadTokens, of the embedding model, are those of a very long question that were
	// not searched for by meaning; they were by their words.
	UnreadTokens int `json:"unread_tokens,omitempty"`
}

// Rewrite is a follow-up question as it was searched for. Its tokens are none of the
// answer's; its time is part of retrieval.
type Rewrite struct {
	Method       string `json:"method"` // model or words
	Query        string `json:"query"`
	InputTokens  int    `json:"input_tokens"`
	OutputTokens int    `json:"output_tokens"`
	CachedTokens int    `json:"cached_tokens"`
}

// Ledger says where the tokens of a prompt went.
type Ledger = budget.Ledger

// Explain is added when the request asks for it.
type Explain struct {
	Prompt     []ExplainPart `json:"prompt"`
	Candidates []Candidate   `json:"candidates"`
	Rerank     rerank.Report `json:"rerank"`
	Language   string        `json:"language"`
}

// ExplainPart is a run of the rendered prompt.
type ExplainPart struct {
	Component string `json:"component"`
	Index     int    `json:"index"`
	Scaffold  bool   `json:"scaffold"`
	Text      string `json:"text"`
}

// Candidate is one retrieved chunk's way through the road: its scores, and why
// it was not presented.
type Candidate struct {
	Source
	Scores  retrieve.Scores `json:"scores"`
	Dropped string          `json:"dropped,omitempty"`
}

// Sink receives what can be shown before the answer is complete. Its methods are
// called from one goroutine, in the order of DESIGN §3.
type Sink interface {
	// Begun comes first: the request is well-formed and recorded under this trace id.
	Begun(traceID string)
	Queued(position int)
	Sources(s Sources)
	Delta(text string)
	Citation(c Citation)
}
