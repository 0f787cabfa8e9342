package httpapi

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/gin-gonic/gin"

	"ragd/internal/answer"
)

// embeddingRequest is the body of POST /v1/embeddings, OpenAI's with one field more.
type embeddingRequest struct {
	Model string   `json:"model"`
	Input textList `json:"input"`
	// InputType is passage, the default, or query: what the texts are.
	InputType      string `json:"input_type"`
	EncodingFormat string `json:"encoding_format"`
	Dimensions     *int   `json:"dimensions"`
	User           string `json:"user"`
}

// textList is a text or a list of texts. Token ids are refused: they would be those
// of another model's tokenizer.
type textList []string

// UnmarshalJSON reads "a" as ["a"].
func (l *textList) UnmarshalJSON(data []byte) error {
	var texts stringOrList
	if texts.UnmarshalJSON(data) == nil {
		*l = textList(texts)
		return nil
	}
	return unsupported("input", "a string or a list of strings is wanted; token ids are not taken, since they mean something else to every model")
}

// embeddingList is the answer.
type embeddingList struct {
	Object  string          `json:"object"`
	Data    []embeddingItem `json:"data"`
	Model   string          `json:"model"`
	Usage   embeddingUsage  `json:"usage"`
	TraceID string          `json:"trace_id"`
}

type embeddingItem struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"` // numbers, or base64 of them as little-endian float32
}

type embeddingUsage struct {
	PromptTokens int `json:"prompt_tokens"`
	TotalTokens  int `json:"total_tokens"`
}

func (s *server) embeddings(c *gin.Context) {
	received := time.Now()
	var req embeddingRequest
	err := s.decode(c, &req)
	if err == nil {
		err = s.checkEmbedding(&req)
	}
	if err != nil {
		s.fail(c, err, s.Asker.Reject(c.Request.Context(), answer.RouteEmbeddings, received, err))
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), s.cfg.RequestTimeout)
	defer cancel()
	res, err := s.Asker.Embed(ctx, received, answer.EmbedRequest{Texts: req.Input, Query: req.InputType == "query"})
	spend(c, res.Tokens)
	if err != nil {
		s.fail(c, err, res.TraceID)
		return
	}
	out := embeddingList{Object: "list", Model: req.Model, Usage: embeddingUsage{res.Tokens, res.Tokens}, TraceID: res.TraceID, Data: []embeddingItem{}}
	for i, v := range res.Vectors {
		item := embeddingItem{Object: "embedding", Index: i, Embedding: v}
		if req.EncodingFormat == "base64" {
			item.Embedding = packed(v)
		}
		out.Data = append(out.Data, item)
	}
	c.Header(traceHeader, res.TraceID)
	c.JSON(http.StatusOK, out)
}

func packed(v []float32) string {
	raw := make([]byte, 0, 4*len(v))
	raw, err := binary.Append(raw, binary.LittleEndian, v)
	if err != nil {
		return "" // never for numbers
	}
	return base64.StdEncoding.EncodeToString(raw)
}

func (s *server) checkEmbedding(r *embeddingRequest) error {
	switch r.InputType {
	case "", "passage", "query":
	default:
		return unsupported("input_type", fmt.Sprintf("%q is not passage or query", r.InputType))
	}
	switch r.EncodingFormat {
	case "", "float", "base64":
	default:
		return unsupported("encoding_format", fmt.Sprintf("%q is not float or base64", r.EncodingFormat))
	}
	if r.Dimensions != nil && *r.Dimensions != s.cfg.Dimensions {
		return unsupported("dimensions", fmt.Sprintf("%d is not what the model makes, %d", *r.Dimensions, s.cfg.Dimensions))
	}
	return s.checkModel(r.Model, RoleEmbeddings)
}

// rerankRequest is the body of POST /v1/rerank, as Cohere and Jina have it.
type rerankRequest struct {
	Model           string     `json:"model"`
	Query           string     `json:"query"`
	Documents       []document `json:"documents"`
	TopN            *int       `json:"top_n"`
	ReturnDocuments bool       `json:"return_documents"`
}

// document is a text, or an object that holds it.
type document struct {
	Text string `json:"text"`
}

// UnmarshalJSON reads "a" as {"text": "a"}.
func (d *document) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &d.Text) == nil {
		return nil
	}
	type plain document
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if dec.Decode((*plain)(d)) != nil {
		return unsupported("documents", `a document is a string or {"text": …}`)
	}
	return nil
}

// rerankResponse lists the documents, best first.
type rerankResponse struct {
	ID      string         `json:"id"`
	TraceID string         `json:"trace_id"`
	Model   string         `json:"model"`
	Results []rerankItem   `json:"results"`
	Usage   embeddingUsage `json:"usage"`
}

type rerankItem struct {
	Index          int       `json:"index"`
	RelevanceScore float32   `json:"relevance_score"`
	CutTokens      int       `json:"cut_tokens,omitempty"` // at the end, not read
	Document       *document `json:"document,omitempty"`
}

func (s *server) rerank(c *gin.Context) {
	received := time.Now()
	var req rerankRequest
	err := s.decode(c, &req)
	if err == nil && req.Model != "" {
		err = s.checkModel(req.Model, RoleRerank)
	}
	if err != nil {
		s.fail(c, err, s.Asker.Reject(c.Request.Context(), answer.RouteRerank, received, err))
		return
	}
	ctx, cancel := context.WithTimeout(c.Request.Context(), s.cfg.RequestTimeout)
	defer cancel()
	texts := make([]string, len(req.Documents))
	for i, d := range req.Documents {
		texts[i] = d.Text
	}
	res, err := s.Asker.Rerank(ctx, received, answer.RerankRequest{Query: req.Query, Texts: texts, TopN: req.TopN})
	spend(c, res.Tokens)
	if err != nil {
		s.fail(c, err, res.TraceID)
		return
	}
	out := rerankResponse{ID: res.ID, TraceID: res.TraceID, Model: res.Model, Results: []rerankItem{}, Usage: embeddingUsage{res.Tokens, res.Tokens}}
	for _, r := range res.Results {
		item := rerankItem{Index: r.Index, RelevanceScore: r.Score, CutTokens: r.Cut}
		if req.ReturnDocuments {
			item.Document = &req.Documents[r.Index]
		}
		out.Results = append(out.Results, item)
	}
	c.Header(traceHeader, res.TraceID)
	c.Header("Server-Timing", res.Timings.ServerTiming())
	c.JSON(http.StatusOK, out)
}
