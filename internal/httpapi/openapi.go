package httpapi

import (
	"net/http"
	"reflect"
	"strings"

	"github.com/gin-gonic/gin"

	"ragd/ingest/store"
	"ragd/internal/answer"
	"ragd/internal/keys"
)

// operation is one route as /openapi.json describes it.
type operation struct {
	method, path, summary string
	role                  keys.Role // "" for everybody
	in, out               any       // zero values of the bodies; nil for none
	events                any       // what an event of the stream holds, where it can stream
	kind                  string    // media type of the answer, where it is not JSON
	query                 []string
}

// The bodies of small answers.
type (
	healthBody struct {
		Status  string `json:"status"`
		Version string `json:"version,omitempty"`
	}
	collectionsBody struct {
		Collections []store.CollectionInfo `json:"collections"`
	}
	documentsBody struct {
		Documents []store.DocumentInfo `json:"documents"`
	}
	deletedBody struct {
		Deleted int `json:"deleted"`
	}
	stoppingBody struct {
		Stopping string `json:"stopping"`
	}
	revokedBody struct {
		Revoked int64 `json:"revoked"`
	}
)

// operations are all routes, in the order of docs/API.md.
var operations = []operation{
	{method: "POST", path: "/ask", summary: "Answer a question from documents", role: keys.Ask, in: answer.Request{}, out: answer.Result{}, events: answer.Result{}},
	{method: "POST", path: "/v1/search", summary: "Search without generation", role: keys.Ask, in: answer.SearchRequest{}, out: answer.SearchResult{}},
	{method: "POST", path: "/v1/chat/completions", summary: "Continue a conversation, in the form of OpenAI", role: keys.Ask, in: completionRequest{}, out: completion{}, events: completionChunk{}},
	{method: "POST", path: "/v1/embeddings", summary: "Embed texts, in the form of OpenAI", role: keys.Ask, in: embeddingRequest{}, out: embeddingList{}},
	{method: "POST", path: "/v1/rerank", summary: "Order documents by a query, in the form of Cohere and Jina", role: keys.Ask, in: rerankRequest{}, out: rerankResponse{}},
	{method: "GET", path: "/v1/models", summary: "List the models", role: keys.Ask, out: modelList{}},
	{method: "GET", path: "/v1/models/{id}", summary: "One model", role: keys.Ask, out: Model{}},
	{method: "GET", path: "/v1/collections", summary: "List the collections", role: keys.Ask, out: collectionsBody{}},
	{method: "GET", path: "/v1/documents", summary: "List the documents of a collection", role: keys.Ask, out: documentsBody{}, query: []string{"collection"}},
	{method: "DELETE", path: "/v1/documents", summary: "Delete documents", role: keys.Ingest, in: deleteRequest{}, out: deletedBody{}},
	{method: "POST", path: "/v1/ingest", summary: "Read in paths of the server's machine; from loopback only", role: keys.Ingest, in: IngestRequest{}, out: ingestLine{}, kind: "application/x-ndjson"},
	{method: "DELETE", path: "/v1/ingest/{id}", summary: "Stop an ingest that runs", role: keys.Ingest, out: stoppingBody{}},
	{method: "GET", path: "/v1/keys", summary: "List the keys", role: keys.Admin, out: KeyList{}},
	{method: "POST", path: "/v1/keys", summary: "Make a key", role: keys.Admin, in: KeyRequest{}, out: NewKey{}},
	{method: "DELETE", path: "/v1/keys/{id}", summary: "Revoke a key", role: keys.Admin, out: revokedBody{}},
	{method: "GET", path: "/metrics", summary: "Metrics for Prometheus", role: keys.Admin, kind: "text/plain"},
	{method: "GET", path: "/debug/latency/data", summary: "What the latency page shows", role: keys.Admin, kind: "application/json"},
	{method: "GET", path: "/debug/latency", summary: "The latency page", kind: "text/html"},
	{method: "GET", path: "/debug/latency/{file}", summary: "A file of the latency page", kind: "application/octet-stream"},
	{method: "GET", path: "/healthz", summary: "The process lives", out: healthBody{}},
	{method: "GET", path: "/readyz", summary: "Questions can be answered", out: healthBody{}},
	{method: "GET", path: "/openapi.json", summary: "This document", kind: "application/json"},
}

type object = map[string]any

// openAPI is the document of every route (OpenAPI 3.1.0).
func openAPI(version string) object {
	s := schemas{}
	paths := object{}
	for _, o := range operations {
		item, _ := paths[o.path].(object)
		if item == nil {
			item = object{}
			paths[o.path] = item
		}
		item[strings.ToLower(o.method)] = o.describe(s)
	}
	return object{
		"openapi": "3.1.0",
		"info":    object{"title": "ragd", "version": version, "summary": "Questions over documents, with a ledger of tokens and of time"},
		"paths":   paths,
		"components": object{
			"schemas":         object(s),
			"securitySchemes": object{"key": object{"type": "http", "scheme": "bearer"}},
		},
	}
}

func (o operation) describe(s schemas) object {
	out := object{"summary": o.summary, "operationId": o.id(), "responses": o.responses(s)}
	if o.role != "" {
		out["security"] = []any{object{"key": []string{}}}
		out["description"] = "Role: " + string(o.role) + "."
	}
	if o.in != nil {
		out["requestBody"] = object{"required": true, "content": content("application/json", s.of(reflect.TypeOf(o.in)))}
	}
	if p := o.parameters(); len(p) > 0 {
		out["parameters"] = p
	}
	return out
}

// id names the operation: "post_v1_chat_completions".
func (o operation) id() string {
	return strings.ToLower(o.method) + strings.NewReplacer("/", "_", "{", "", "}", "", ".", "_").Replace(o.path)
}

func (o operation) parameters() []any {
	var out []any
	for part := range strings.SplitSeq(o.path, "/") {
		if name, ok := strings.CutPrefix(part, "{"); ok {
			out = append(out, object{"name": strings.TrimSuffix(name, "}"), "in": "path", "required": true, "schema": object{"type": "string"}})
		}
	}
	for _, q := range o.query {
		out = append(out, object{"name": q, "in": "query", "schema": object{"type": "string"}})
	}
	return out
}

func (o operation) responses(s schemas) object {
	ok := object{}
	kind := o.kind
	if kind == "" {
		kind = "application/json"
	}
	if o.out != nil {
		ok = content(kind, s.of(reflect.TypeOf(o.out)))
	} else {
		ok[kind] = object{}
	}
	if o.events != nil {
		ok["text/event-stream"] = object{"schema": s.of(reflect.TypeOf(o.events))}
	}
	failure := any(errorBody{})
	if openAIForm(o.path) {
		failure = openAIError{}
	}
	return object{
		"200":     object{"description": "done", "content": ok},
		"default": object{"description": "an error", "content": content("application/json", s.of(reflect.TypeOf(failure)))},
	}
}

func content(kind string, schema object) object { return object{kind: object{"schema": schema}} }

func (s *server) openAPI(c *gin.Context) { c.JSON(http.StatusOK, openAPI(s.cfg.Version)) }
