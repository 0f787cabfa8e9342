//go:build collector

package deploy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ragd/internal/config"
	"ragd/internal/testenv"
)

// The programs that `make check-collector` builds.
var (
	programs = filepath.Join("..", ".cache", "collector", "bin")
	binary   = filepath.Join("..", "bin", "ragd")
)

// loadTime is how long ragd is under load before Prometheus is asked. The dashboard's
// intervals are a minute.
const loadTime = 75 * time.Second

// stack is what docker-compose.yml brings up, as processes on loopback.
type stack struct {
	ragd, jaeger, prometheus string
	otlp                     string // the collector's gRPC endpoint
	database                 string // of the ragd that is asked
}

// TestStack runs the collector with deploy's own configuration, Jaeger, Prometheus with
// deploy's rules, and ragd sending OTLP, and reads back what arrived.
func TestStack(t *testing.T) {
	s := bringUp(t)
	s.ingest(t)
	t.Run("traces", func(t *testing.T) { s.checkTraces(t) })
	t.Run("failures", func(t *testing.T) { s.checkFailures(t) })
	t.Run("remote", func(t *testing.T) { s.checkRemote(t) })
	s.load(t)
	t.Run("queries", func(t *testing.T) { s.checkQueries(t) })
	t.Run("rules", func(t *testing.T) { s.checkRules(t) })
	t.Run("exemplars", func(t *testing.T) { s.checkExemplars(t) })
}

// freePorts are ports of loopback that nobody has. Jaeger sends its own spans to 4317,
// which is left to nobody.
func freePorts(t *testing.T, n int) []string {
	t.Helper()
	out := make([]string, n)
	for i := range out {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		_, out[i], _ = net.SplitHostPort(l.Addr().String())
	}
	return out
}

func bringUp(t *testing.T) *stack {
	t.Helper()
	p := freePorts(t, 8)
	jaegerHTTP, jaegerGRPC, jaegerOTLP, grpc, http, self, prom, own := p[0], p[1], p[2], p[3], p[4], p[5], p[6], p[7]
	dir := t.TempDir()
	run(t, "jaeger", filepath.Join(programs, "jaeger"), []string{"OTEL_TRACES_SAMPLER=always_off", "JAEGER_HTTP=" + jaegerHTTP, "JAEGER_GRPC=" + jaegerGRPC, "JAEGER_OTLP=" + jaegerOTLP}, "--config", filepath.Join("collector", "jaeger.yaml"))
	// The shipped configuration with other addresses: 0.0.0.0 and the names of compose
	// are not for a test.
	addresses := put(t, dir, "addresses.yaml", fmt.Sprintf(`
receivers: {otlp: {protocols: {grpc: {endpoint: "127.0.0.1:%s"}, http: {endpoint: "127.0.0.1:%s"}}}}
exporters: {otlp/jaeger: {endpoint: "127.0.0.1:%s"}}
service: {telemetry: {metrics: {readers: [{pull: {exporter: {prometheus: {host: 127.0.0.1, port: %s}}}}]}}}
`, grpc, http, jaegerOTLP, self))
	run(t, "collector", filepath.Join(programs, "otelcol"), nil, "--config", "otel-collector.yaml", "--config", addresses)
	rules, err := filepath.Abs(filepath.Join("prometheus", "rules"))
	if err != nil {
		t.Fatal(err)
	}
	scrape := put(t, dir, "prometheus.yml", fmt.Sprintf(`
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: ["%s/*.yml"]
scrape_configs:
  - {job_name: ragd, static_configs: [{targets: ["127.0.0.1:%s"]}]}
  - {job_name: collector, static_configs: [{targets: ["127.0.0.1:%s"]}]}
`, rules, own, self))
	run(t, "prometheus", "prometheus", nil, "--config.file", scrape, "--storage.tsdb.path", filepath.Join(dir, "tsdb"),
		"--web.listen-address", "127.0.0.1:"+prom, "--enable-feature", "exemplar-storage", "--log.level", "warn")
	s := &stack{
		jaeger: "http://127.0.0.1:" + jaegerHTTP, prometheus: "http://127.0.0.1:" + prom, otlp: "http://127.0.0.1:" + grpc,
		database: testenv.Database(t).Config().ConnString(),
	}
	s.ragd = s.serve(t, "ragd", own, "RAGD_DATABASE_URL="+s.database, "RAGD_COST_MACHINE_PER_HOUR=0.36")
	for _, probe := range []string{s.jaeger + "/api/services", s.prometheus + "/-/ready", "http://127.0.0.1:" + self + "/metrics"} {
		until(t, 2*time.Minute, probe, func() bool {
			resp, err := httpGet(probe)
			return err == nil && resp != nil
		})
	}
	return s
}

// serve starts a ragd that is a service of that name, and returns its address once it
// can answer.
func (s *stack) serve(t *testing.T, name, port string, env ...string) string {
	t.Helper()
	cfg := config.Default()
	run(t, name, binary, append([]string{
		"RAGD_HOME=" + filepath.Join(t.TempDir(), "home"), "RAGD_INFERENCE_KV_CACHE_TOKENS=8192",
		"RAGD_MODELS_ANSWER=" + testenv.Model(t, cfg.Models.Answer), "RAGD_MODELS_EMBEDDING=" + testenv.Model(t, cfg.Models.Embedding),
		"OTEL_SERVICE_NAME=" + name, "OTEL_EXPORTER_OTLP_ENDPOINT=" + s.otlp, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_METRICS_EXPORTER=none", "OTEL_BSP_SCHEDULE_DELAY=200",
	}, env...), "serve", "--addr", "127.0.0.1:"+port)
	url := "http://127.0.0.1:" + port
	until(t, 2*time.Minute, url, func() bool {
		_, err := httpGet(url + "/readyz")
		return err == nil
	})
	return url
}

// run starts a program that ends with the test.
func run(t *testing.T, name, program string, env []string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(t.TempDir(), name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "OTEL_") || strings.HasPrefix(kv, "RAGD_") })
	cmd.Env = append(cmd.Env, env...)
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		kill := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
		defer kill.Stop()
		_ = cmd.Wait()
		if t.Failed() {
			data, _ := os.ReadFile(log.Name())
			t.Logf("%s said: %s", name, data[max(0, len(data)-3000):])
		}
		log.Close()
	})
}

func put(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// until waits for what is to come.
func until(t *testing.T, limit time.Duration, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if done() {
			return
		}
	}
	t.Fatalf("waited %v for %s", limit, what)
}

// httpGet returns the body of a page, or nil when it is no 200.
func httpGet(address string) ([]byte, error) {
	resp, err := http.Get(address)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %d %.200s %w", address, resp.StatusCode, data, err)
	}
	return data, nil
}

func getJSON(t *testing.T, address string, v any) {
	t.Helper()
	data, err := httpGet(address)
	if err == nil {
		err = json.Unmarshal(data, v)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// post sends JSON and returns what came back.
func (s *stack) post(t *testing.T, ctx context.Context, path string, v any) (int, []byte, error) {
	t.Helper()
	body, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.ragd+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, data, err
}

func (s *stack) ingest(t *testing.T) {
	t.Helper()
	corpus, err := filepath.Abs(filepath.Join("..", "examples", "corpus"))
	if err != nil {
		t.Fatal(err)
	}
	status, data, err := s.post(t, t.Context(), "/v1/ingest", map[string]any{"paths": []string{corpus}})
	if err != nil || status != http.StatusOK || !bytes.Contains(data, []byte(`"report"`)) {
		t.Fatalf("ingest: %d %s %v", status, data, err)
	}
}

const question = "How many numbers does a vector of multilingual-e5-small have?"

// load asks and searches in turn, for long enough that Prometheus has rates.
func (s *stack) load(t *testing.T) {
	t.Helper()
	s.ingest(t) // again: a counter's first sample is no increase
	n := 0
	for end := time.Now().Add(loadTime); time.Now().Before(end); n++ {
		path, body := "/v1/search", map[string]any{"query": fmt.Sprintf("%s (%d)", question, n)}
		if n%4 == 0 {
			path, body = "/ask", map[string]any{"question": fmt.Sprintf("Question %d: %s", n, question), "answer_mode": "generate", "budget": map[string]any{"answer_tokens": 8}}
		}
		if status, data, err := s.post(t, t.Context(), path, body); err != nil || status != http.StatusOK {
			t.Fatalf("%s: %d %s %v", path, status, data, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Logf("%d requests in %v", n, loadTime)
}

// query asks Prometheus and returns how many series have a number.
func (s *stack) query(t *testing.T, expr string) int {
	t.Helper()
	var out struct {
		Data struct{ Result json.RawMessage }
	}
	getJSON(t, s.prometheus+"/api/v1/query?query="+url.QueryEscape(expr), &out)
	var vector []struct{ Value [2]any }
	if err := json.Unmarshal(out.Data.Result, &vector); err != nil {
		return 1 // a scalar
	}
	n := 0
	for _, v := range vector {
		if v.Value[1] != "NaN" {
			n++
		}
	}
	return n
}

// checkQueries: every panel has something to show.
func (s *stack) checkQueries(t *testing.T) {
	queries := dashboardQueries(t)
	for _, q := range queries {
		if s.query(t, strings.ReplaceAll(q.expr, "$__rate_interval", "1m")) == 0 {
			t.Errorf("%s has no data: %s", q.where, q.expr)
		}
	}
	t.Logf("%d queries of the dashboard", len(queries))
}

// checkRules: every rule is evaluated without error, every recorded series is there,
// and every alert looks at series that are there. That each fires when it should is
// promtool's to show (make check-rules).
func (s *stack) checkRules(t *testing.T) {
	var loaded struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, State, LastError string }
			}
		}
	}
	getJSON(t, s.prometheus+"/api/v1/rules", &loaded)
	n := 0
	for _, g := range loaded.Data.Groups {
		for _, r := range g.Rules {
			n++
			if r.Health != "ok" || r.State == "firing" {
				t.Errorf("rule %s is %s %s %s", r.Name, r.Health, r.State, r.LastError)
			}
		}
	}
	want := 0
	for _, f := range ruleFiles(t) {
		for _, g := range f.Groups {
			for _, r := range g.Rules {
				want++
				if r.Record != "" && s.query(t, r.Expr) == 0 {
					t.Errorf("%s records nothing: %s", r.Record, r.Expr)
				}
				for name := range metrics(r.Expr) {
					if s.query(t, name) == 0 {
						t.Errorf("%s%s looks at %s, which is not there", r.Record, r.Alert, name)
					}
				}
			}
		}
	}
	if n != want {
		t.Errorf("%d rules of %d are loaded", n, want)
	}
	t.Logf("%d rules", n)
}

// checkExemplars: a point of a chart leads to a trace in Jaeger.
func (s *stack) checkExemplars(t *testing.T) {
	for _, histogram := range []string{"ragd_ttft_seconds_bucket", "ragd_request_duration_seconds_bucket", "gen_ai_server_time_to_first_token_seconds_bucket"} {
		var out struct {
			Data []struct {
				Exemplars []struct{ Labels map[string]string }
			}
		}
		now := time.Now()
		getJSON(t, fmt.Sprintf("%s/api/v1/query_exemplars?query=%s&start=%d&end=%d", s.prometheus, histogram, now.Add(-time.Hour).Unix(), now.Unix()), &out)
		ids := map[string]bool{}
		for _, d := range out.Data {
			for _, e := range d.Exemplars {
				ids[e.Labels["trace_id"]] = true
			}
		}
		if len(ids) == 0 {
			t.Errorf("%s has no exemplars", histogram)
		}
		for i, id := range slices.Sorted(maps.Keys(ids)) {
			if i == 5 {
				break
			}
			if spans := s.trace(t, id); len(spans) == 0 {
				t.Errorf("exemplar %s of %s leads nowhere", id, histogram)
			}
		}
		t.Logf("%s: %d exemplars", histogram, len(ids))
	}
}
