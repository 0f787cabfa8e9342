package httpapi

import (
	"net/http"
	"strings"

	"github.com/gin-gonic/gin"

	"ragd/internal/answer"
)

// openAIError is the error of the routes in the OpenAI form.
type openAIError struct {
	Error openAIErrorDetail `json:"error"`
}

type openAIErrorDetail struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
	TraceID string  `json:"trace_id,omitempty"`
}

// modelNotFound is the code of a model's name that nothing answers to.
const modelNotFound answer.Code = "model_not_found"

// openAIErrors are the type, code and status of each code of ragd, as clients of
// OpenAI look for them.
var openAIErrors = map[answer.Code]struct {
	kind, code string
	status     int
}{
	answer.Invalid:     {"invalid_request_error", "invalid_value", http.StatusBadRequest},
	answer.OverBudget:  {"invalid_request_error", "context_length_exceeded", http.StatusBadRequest},
	answer.NotFound:    {"invalid_request_error", "not_found", http.StatusNotFound},
	modelNotFound:      {"invalid_request_error", "model_not_found", http.StatusNotFound},
	answer.Conflict:    {"invalid_request_error", "conflict", http.StatusConflict},
	answer.TooLarge:    {"invalid_request_error", "too_large", http.StatusRequestEntityTooLarge},
	unauthorized:       {"authentication_error", "invalid_api_key", http.StatusUnauthorized},
	forbidden:          {"permission_error", "forbidden", http.StatusForbidden},
	methodNotAllowed:   {"invalid_request_error", "method_not_allowed", http.StatusMethodNotAllowed},
	answer.Busy:        {"rate_limit_error", "rate_limit_exceeded", http.StatusTooManyRequests},
	answer.Unavailable: {"server_error", "unavailable", http.StatusServiceUnavailable},
	answer.Timeout:     {"server_error", "timeout", http.StatusGatewayTimeout},
	answer.Cancelled:   {"server_error", "cancelled", statusClientClosed},
	answer.Internal:    {"server_error", "internal_error", http.StatusInternalServerError},
}

// openAIForm reports whether a route speaks the OpenAI form, errors included.
func openAIForm(path string) bool {
	return path == "/v1/chat/completions" || path == "/v1/embeddings" || path == "/v1/models" || strings.HasPrefix(path, "/v1/models/")
}

func openAIBodyOf(e *answer.Error, traceID string) openAIError {
	k := openAIErrors[e.Code]
	out := openAIError{openAIErrorDetail{Message: e.Message, Type: k.kind, Code: k.code, TraceID: traceID}}
	if e.Field != "" {
		// What POST /ask has inside "sampling" stands in the request itself here.
		field, inside := strings.CutPrefix(e.Field, "sampling.")
		if rest, named := strings.CutPrefix(e.Message, e.Field); inside && named {
			out.Error.Message = field + rest
		}
		out.Error.Param = &field
	}
	return out
}

// errorFor is the status and body of an error, in the form of the route.
func errorFor(c *gin.Context, e *answer.Error, traceID string) (int, any) {
	if openAIForm(c.Request.URL.Path) {
		return openAIErrors[e.Code].status, openAIBodyOf(e, traceID)
	}
	return statuses[e.Code], bodyOf(e, traceID)
}

// unsupported refuses a field of OpenAI's that asks for what ragd does not do.
func unsupported(field, reason string) error {
	return &answer.Error{Code: answer.Invalid, Field: field, Message: field + ": " + reason}
}
