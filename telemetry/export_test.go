package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// sink is a collector that keeps names: of services and of spans.
type sink struct {
	collector.UnimplementedTraceServiceServer
	mu              sync.Mutex
	services, spans []string
}

// Export takes a batch over gRPC.
func (s *sink) Export(_ context.Context, req *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range req.GetResourceSpans() {
		for _, a := range r.GetResource().GetAttributes() {
			if a.GetKey() == "service.name" {
				s.services = append(s.services, a.GetValue().GetStringValue())
			}
		}
		for _, scope := range r.GetScopeSpans() {
			for _, span := range scope.GetSpans() {
				s.spans = append(s.spans, span.GetName())
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// ServeHTTP takes a batch over HTTP.
func (s *sink) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var req collector.ExportTraceServiceRequest
	data, err := io.ReadAll(r.Body)
	if err == nil {
		err = proto.Unmarshal(data, &req)
	}
	if err != nil || r.URL.Path != "/v1/traces" {
		http.Error(w, "not a batch of spans", http.StatusBadRequest)
		return
	}
	_, _ = s.Export(r.Context(), &req)
}

// quietly clears what the machine may have set.
func quietly(t *testing.T, vars map[string]string) {
	t.Helper()
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, "")
		}
	}
	for name, value := range vars {
		t.Setenv(name, value)
	}
}

// export runs one question through telemetry as the environment has it.
func export(ctx context.Context) error {
	tel, err := New(ctx, Config{Version: "test"}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	oneQuestion(tel)
	return tel.Shutdown(ctx)
}

// asProcess makes the test binary export one question and end: what goes to
// standard output is chosen when a process starts.
const asProcess = "TELEMETRY_TEST_EXPORT"

func TestMain(m *testing.M) {
	if os.Getenv(asProcess) == "" {
		os.Exit(m.Run())
	}
	if err := export(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestOTLP sends spans to a collector over both protocols, chosen by the standard
// variables alone.
func TestOTLP(t *testing.T) {
	over := map[string]func(t *testing.T, s *sink) map[string]string{
		"http": func(t *testing.T, s *sink) map[string]string {
			srv := httptest.NewServer(s)
			t.Cleanup(srv.Close)
			return map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": srv.URL, "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}
		},
		"grpc": func(t *testing.T, s *sink) map[string]string {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			srv := grpc.NewServer()
			collector.RegisterTraceServiceServer(srv, s)
			go func() { _ = srv.Serve(l) }()
			t.Cleanup(srv.Stop)
			return map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://" + l.Addr().String(), "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_TRACES_EXPORTER": "otlp"}
		},
	}
	for name, listen := range over {
		t.Run(name, func(t *testing.T) {
			var s sink
			quietly(t, listen(t, &s))
			t.Setenv("OTEL_SERVICE_NAME", "ragd-under-test")
			t.Setenv("OTEL_METRICS_EXPORTER", "none")
			if err := export(t.Context()); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"POST /ask", "prefill", "retrieval default"} {
				if !slices.Contains(s.spans, want) {
					t.Errorf("the collector has no %q: %v", want, s.spans)
				}
			}
			if len(s.spans) != 14 || !slices.Contains(s.services, "ragd-under-test") {
				t.Errorf("%d spans of services %v", len(s.spans), s.services)
			}
		})
	}
}

// TestConsole: OTEL_TRACES_EXPORTER=console writes spans to standard output; none
// and nothing write none.
func TestConsole(t *testing.T) {
	for exporter, want := range map[string]bool{"console": true, "none": false, "": false} {
		t.Run(exporter, func(t *testing.T) {
			quietly(t, map[string]string{"OTEL_TRACES_EXPORTER": exporter, asProcess: "1"})
			data, err := exec.CommandContext(t.Context(), os.Args[0]).Output()
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(string(data), "POST /ask"); got != want || !want && len(data) != 0 {
				t.Errorf("%q wrote %d bytes: %.200s", exporter, len(data), data)
			}
		})
	}
}

func TestUnknownExporterIsRefused(t *testing.T) {
	quietly(t, map[string]string{"OTEL_TRACES_EXPORTER": "pigeon"})
	if _, err := New(t.Context(), Config{}, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "pigeon") {
		t.Errorf("got %v", err)
	}
}

// TestNoCollectorCostsNothing: a collector that is away does not hold up requests,
// nor the end of the process beyond its time.
func TestNoCollectorCostsNothing(t *testing.T) {
	quietly(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_METRICS_EXPORTER": "none", "OTEL_EXPORTER_OTLP_TIMEOUT": "200"})
	tel, err := New(t.Context(), Config{Version: "test"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	oneQuestion(tel)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_ = tel.Shutdown(ctx) // whatever it says, it returns
	if rows := tel.recent.since(0, 10); len(rows) != 1 {
		t.Errorf("%d requests were recorded", len(rows))
	}
}
