package httpapi

import (
	"log/slog"
	"math"
	"net/http"
	"runtime/debug"
	"strconv"

	"github.com/gin-gonic/gin"

	"ragd/internal/answer"
)

// Codes that only HTTP knows.
const (
	unauthorized     answer.Code = "unauthorized"
	forbidden        answer.Code = "forbidden"
	methodNotAllowed answer.Code = "method_not_allowed"
)

// statusClientClosed is what a request whose client went away is counted as; the
// client never sees it. The number is nginx's.
const statusClientClosed = 499

// statuses is the one table from codes to HTTP.
var statuses = map[answer.Code]int{
	answer.Invalid:     http.StatusBadRequest,
	unauthorized:       http.StatusUnauthorized,
	forbidden:          http.StatusForbidden,
	answer.NotFound:    http.StatusNotFound,
	modelNotFound:      http.StatusNotFound,
	answer.Conflict:    http.StatusConflict,
	methodNotAllowed:   http.StatusMethodNotAllowed,
	answer.TooLarge:    http.StatusRequestEntityTooLarge,
	answer.OverBudget:  http.StatusUnprocessableEntity,
	answer.Busy:        http.StatusTooManyRequests,
	answer.Cancelled:   statusClientClosed,
	answer.Unavailable: http.StatusServiceUnavailable,
	answer.Timeout:     http.StatusGatewayTimeout,
	answer.Internal:    http.StatusInternalServerError,
}

// traceHeader has the trace id of a request that is recorded.
const traceHeader = "X-Trace-Id"

// errorBody is the one shape of every error.
type errorBody struct {
	Error errorDetail `json:"error"`
}

type errorDetail struct {
	Code    answer.Code `json:"code"`
	Message string      `json:"message"`
	Field   string      `json:"field,omitempty"`
	TraceID string      `json:"trace_id,omitempty"`
}

func bodyOf(e *answer.Error, traceID string) errorBody {
	return errorBody{errorDetail{Code: e.Code, Message: e.Message, Field: e.Field, TraceID: traceID}}
}

// fail answers with err; what it wraps is logged and not sent.
func (s *server) fail(c *gin.Context, err error, traceID string) {
	e := answer.AsError(err)
	s.logError(c, e, traceID)
	if traceID != "" {
		c.Header(traceHeader, traceID)
	}
	if e.RetryAfter > 0 {
		c.Header("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}
	c.AbortWithStatusJSON(errorFor(c, e, traceID))
}

func (s *server) logError(c *gin.Context, e *answer.Error, traceID string) {
	if e.Err == nil || e.Code == answer.Cancelled {
		return
	}
	s.Log.LogAttrs(c.Request.Context(), slog.LevelError, "request failed",
		slog.String("route", c.FullPath()), slog.String("code", string(e.Code)),
		slog.String("trace_id", traceID), slog.Any("error", e.Err))
}

func (s *server) logPanic(c *gin.Context, v any) {
	s.Log.LogAttrs(c.Request.Context(), slog.LevelError, "panic in a handler",
		slog.String("route", c.FullPath()), slog.Any("value", v), slog.String("stack", string(debug.Stack())))
}
