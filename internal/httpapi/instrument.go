package httpapi

import (
	"slices"
	"strings"
	"time"

	"github.com/gin-gonic/gin"
	"go.opentelemetry.io/contrib/instrumentation/github.com/gin-gonic/gin/otelgin"
	"go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/propagation"

	"ragd/internal/answer"
	"ragd/telemetry"
)

// instrument measures every route by OpenTelemetry's conventions: the metric
// http.server.request.duration, and a server span where the route begins none of its
// own. Labels are those of the conventions; the route is the pattern that matched, so
// their number is that of the routes.
func instrument(t *telemetry.Telemetry) []gin.HandlerFunc {
	incoming := t.Incoming()
	return []gin.HandlerFunc{
		func(c *gin.Context) {
			began := time.Now()
			if quiet(c) {
				c.Request = c.Request.WithContext(incoming.Extract(c.Request.Context(), propagation.HeaderCarrier(c.Request.Header)))
			}
			c.Next()
			t.Served(c.Request.Context(), telemetry.Served{
				Method: c.Request.Method, Route: c.FullPath(), Protocol: c.Request.Proto, TLS: c.Request.TLS != nil,
				Status: c.Writer.Status(), Took: time.Since(began),
			})
		},
		otelgin.Middleware("ragd",
			otelgin.WithGinFilter(func(c *gin.Context) bool { return !quiet(c) }),
			otelgin.WithTracerProvider(t.ServerTracers()),
			otelgin.WithMeterProvider(noop.NewMeterProvider()),
			otelgin.WithPropagators(incoming),
		),
	}
}

// measured are the routes that make a span of their own.
var measured = []answer.Route{answer.RouteAsk, answer.RouteSearch, answer.RouteChat, answer.RouteEmbeddings, answer.RouteRerank}

// quiet reports whether a route makes its own span or is asked so often by machines
// that its spans would be noise. What matches no route has none either.
func quiet(c *gin.Context) bool {
	path := c.FullPath()
	if path == "" || slices.ContainsFunc(measured, func(r answer.Route) bool { return isRoute(string(r), c.Request.Method, path) }) {
		return true
	}
	return c.Request.Method == "GET" && (path == "/healthz" || path == "/readyz" || path == "/metrics" || strings.HasPrefix(path, LatencyPath))
}

// isRoute reports whether a route is "METHOD path".
func isRoute(route, method, path string) bool {
	m, p, _ := strings.Cut(route, " ")
	return m == method && p == path
}
