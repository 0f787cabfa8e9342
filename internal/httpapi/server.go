// Package httpapi is ragd over HTTP: routes, strict decoding, Server-Sent
// Events, and one table from error codes to status.
package httpapi

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/gin-gonic/gin"

	"ragd/ingest"
	"ragd/ingest/store"
	"ragd/internal/answer"
	"ragd/internal/keys"
	"ragd/telemetry"
)

// Asker answers questions; *answer.Service is one.
type Asker interface {
	Ask(ctx context.Context, received time.Time, req answer.Request, sink answer.Sink) (*answer.Result, error)
	Search(ctx context.Context, req answer.SearchRequest) (*answer.SearchResult, error)
	Chat(ctx context.Context, received time.Time, req answer.ChatRequest, sink answer.Sink) (*answer.ChatResult, error)
	Embed(ctx context.Context, received time.Time, req answer.EmbedRequest) (*answer.EmbedResult, error)
	Rerank(ctx context.Context, received time.Time, req answer.RerankRequest) (*answer.RerankResult, error)
	// Reject records a request of a route that was refused before it could be asked and
	// returns its trace id.
	Reject(ctx context.Context, route answer.Route, received time.Time, err error) (traceID string)
}

// Library lists and removes what is stored.
type Library interface {
	Documents(ctx context.Context, collection string) ([]store.DocumentInfo, error)
	Collections(ctx context.Context) ([]store.CollectionInfo, error)
	Delete(ctx context.Context, collection string, paths []string) (int, error)
}

// IngestRequest is the body of POST /v1/ingest.
type IngestRequest struct {
	Paths      []string `json:"paths"`
	Collection string   `json:"collection"`
	Prune      bool     `json:"prune"`
}

// Ingester reads files of this machine.
type Ingester interface {
	Ingest(ctx context.Context, req IngestRequest, progress func(ingest.Progress)) (ingest.Report, error)
}

// Deps are what the routes need.
type Deps struct {
	Asker    Asker
	Library  Library
	Ingester Ingester
	Guard    Guard
	// Stopping is closed when the server shuts down: running ingests then end and
	// report. It may be nil.
	Stopping <-chan struct{}
	// Ready returns why a question could not be answered now, or nil.
	Ready func(ctx context.Context) error
	// Metrics serves /metrics.
	Metrics http.Handler
	// Latency serves the page /debug/latency and its assets, which hold no data;
	// LatencyData serves what the page shows.
	Latency, LatencyData http.Handler

	// Telemetry measures the routes; nil measures none.
	Telemetry *telemetry.Telemetry

	Models []Model
	Log    *slog.Logger
}

// LatencyPath is where the latency page lies. A browser cannot send a key with
// the address of a page, so the page itself is open; it asks for the key and
// sends it when it asks for data.
const LatencyPath = "/debug/latency"

// Config bounds the server.
type Config struct {
	MaxBodyBytes   int64
	RequestTimeout time.Duration
	// Stall is how long a body may take to arrive, and how long a client may leave an
	// answer unread; 0 for a minute.
	Stall time.Duration
	// Version is reported by /healthz.
	Version string
	// Dimensions is the length of an embedding.
	Dimensions int
}

type server struct {
	Deps
	cfg Config
	// ingests maps the id of a running ingest to its context.CancelFunc.
	ingests sync.Map
	started time.Time
}

// New returns the handler of every route.
func New(deps Deps, cfg Config) http.Handler {
	s := &server{Deps: deps, cfg: cfg, started: time.Now()}
	gin.SetMode(gin.ReleaseMode)
	e := gin.New()
	e.HandleMethodNotAllowed = true
	e.ContextWithFallback = true
	// No proxy in front is known, so nobody's word is taken for who the client is.
	e.ForwardedByClientIP = false
	if deps.Telemetry != nil {
		e.Use(instrument(deps.Telemetry)...)
	}
	e.Use(s.hold, s.recover)
	e.NoRoute(func(c *gin.Context) { s.fail(c, &answer.Error{Code: answer.NotFound, Message: "no such route"}, "") })
	e.NoMethod(func(c *gin.Context) {
		s.fail(c, &answer.Error{Code: methodNotAllowed, Message: "method not allowed"}, "")
	})
	e.GET("/healthz", s.healthz)
	e.GET("/readyz", s.readyz)
	e.GET("/openapi.json", s.openAPI)
	e.GET(LatencyPath, gin.WrapH(deps.Latency))
	e.GET(LatencyPath+"/:file", gin.WrapH(deps.Latency))
	s.routes(e.Group("/", s.authorize(keys.Ask)), e.Group("/", s.authorize(keys.Ingest)), e.Group("/", s.authorize(keys.Admin)))
	return e
}

// routes are those that need a key, by its role.
func (s *server) routes(ask, ingest, admin gin.IRoutes) {
	ask.POST("/ask", s.limit, s.ask)
	ask.POST("/v1/search", s.limit, s.search)
	ask.POST("/v1/chat/completions", s.limit, s.chatCompletions)
	ask.POST("/v1/embeddings", s.limit, s.embeddings)
	ask.POST("/v1/rerank", s.limit, s.rerank)
	ask.GET("/v1/models", s.models)
	ask.GET("/v1/models/*id", s.model)
	ask.GET("/v1/collections", s.collections)
	ask.GET("/v1/documents", s.documents)
	ingest.DELETE("/v1/documents", s.deleteDocuments)
	ingest.POST("/v1/ingest", s.loopbackOnly, s.ingest)
	ingest.DELETE("/v1/ingest/:id", s.loopbackOnly, s.stopIngest)
	admin.GET("/metrics", gin.WrapH(s.Metrics))
	admin.GET(LatencyPath+"/data", gin.WrapH(s.LatencyData))
	admin.GET("/v1/keys", s.listKeys)
	admin.POST("/v1/keys", s.addKey)
	admin.DELETE("/v1/keys/:id", s.revokeKey)
}

// recover turns a panic into the one error shape; the stack goes to the log.
func (s *server) recover(c *gin.Context) {
	defer func() {
		if v := recover(); v != nil {
			s.logPanic(c, v)
			if !c.Writer.Written() {
				s.fail(c, &answer.Error{Code: answer.Internal, Message: "internal error"}, "")
			}
			c.Abort()
		}
	}()
	c.Next()
}
