package httpapi

import (
	"slices"
	"strings"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"

	"ragd/internal/answer"
	"ragd/telemetry"
)

// instrument measures every route by OpenTelemetry's conventions: the metric
// http.server.request.duration, and a server span where the route begins none of its
// own. Labels are those of the conventions; the route is the pattern that matched, so
// their number is that of the routes.
func instrument(t *telemetry.Telemetry) gin.HandlerFunc {
	return otelgin.Middleware("ragd",
		otelgin.WithTracerProvider(t.ServerTracers(withoutServerSpan)),
		otelgin.WithMeterProvider(t.MeterProvider()),
		otelgin.WithPropagators(t.Incoming()),
	)
}

// measured are the routes that make a span of their own.
var measured = []answer.Route{answer.RouteAsk, answer.RouteSearch, answer.RouteChat, answer.RouteEmbeddings, answer.RouteRerank}

// withoutServerSpan reports, by the name of the span, whether a route makes its own
// or is asked so often by machines that its spans would be noise. What matches no
// route has none either.
func withoutServerSpan(name string) bool {
	method, path, ok := strings.Cut(name, " ")
	switch {
	case slices.Contains(measured, answer.Route(name)):
		return true
	case !ok || !strings.HasPrefix(path, "/"):
		return true
	}
	return method == "GET" && (path == "/healthz" || path == "/readyz" || path == "/metrics" || strings.HasPrefix(path, LatencyPath))
}
