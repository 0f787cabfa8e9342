package deploy_test

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"gopkg.in/yaml.v3"

	"ragd/internal/httpapi"
	"ragd/telemetry"
	"ragd/telemetry/cost"
	"ragd/telemetry/pgtrace"
)

// series are the metrics that a process exposes, each with its labels.
type series map[string]map[string]bool

func exposed(t *testing.T) series { return parse(scraped(t)) }

// scraped is what a process exposes in which everything has happened once: a request
// through every stage, an ingest run, an engine, a database pool, a call that failed.
func scraped(t *testing.T) string {
	t.Helper()
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	ctx := context.Background()
	tel, err := telemetry.New(ctx, telemetry.Config{Version: "test"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tel.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	if err := tel.WatchEngine(func() telemetry.EngineStats { return telemetry.EngineStats{Running: 1} }); err != nil {
		t.Fatal(err)
	}
	// The pool connects to nothing: its figures are there all the same.
	pool, err := pgxpool.New(ctx, "postgres://nobody@127.0.0.1:1/none")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if err := otelpgx.RecordStats(pool, otelpgx.WithStatsMeterProvider(tel.MeterProvider())); err != nil {
		t.Fatal(err)
	}
	ask(tel)
	called(t, tel)
	// One request of HTTP, which is measured by its instrumentation.
	httpapi.New(httpapi.Deps{
		Metrics: tel.Handler(), Latency: http.NotFoundHandler(), LatencyData: http.NotFoundHandler(), Log: slog.New(slog.DiscardHandler), Telemetry: tel,
	}, httpapi.Config{}).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, "/healthz", nil))
	run := tel.BeginIngest()
	run.Progress(ctx, telemetry.IngestProgress{Settled: 1, Found: 2, Bytes: 3, Chunks: 4, Tokens: 5})
	run.End(ctx, telemetry.IngestOutcome{Indexed: 1})
	return scrape(t, tel, "")
}

// called asks a database once, in vain.
func called(t *testing.T, tel *telemetry.Telemetry) {
	t.Helper()
	tracer, err := pgtrace.New(tel.TracerProvider(), tel.MeterProvider(), "none")
	if err != nil {
		t.Fatal(err)
	}
	ctx := tracer.TraceQueryStart(context.Background(), nil, pgx.TraceQueryStartData{SQL: "SELECT 1"})
	tracer.TraceQueryEnd(ctx, nil, pgx.TraceQueryEndData{Err: &pgconn.PgError{Code: "57014"}})
}

func ask(tel *telemetry.Telemetry) {
	received := time.Now()
	ctx, r := tel.Begin(context.Background(), "POST /ask", received)
	for _, s := range []telemetry.Stage{telemetry.StageRetrieval, telemetry.StageRerank, telemetry.StagePack, telemetry.StageRender} {
		_, end := r.Begin(ctx, s, "")
		end(nil)
	}
	at := time.Now()
	r.Generation(ctx, telemetry.EngineTimes{
		Submitted: at, Scheduled: at.Add(time.Millisecond), FirstToken: at.Add(2 * time.Millisecond), Last: at.Add(5 * time.Millisecond), OutputTokens: 3,
	}, at)
	r.FirstWrite(at.Add(2 * time.Millisecond))
	r.End(ctx, r.Timings(at.Add(6*time.Millisecond)), telemetry.Summary{
		Outcome: telemetry.Answered, Model: "m", InputTokens: 9, OutputTokens: 3, CachedTokens: 1, RetrievedChunks: 2, UsedChunks: 1,
		Dropped: []telemetry.Dropped{{Reason: "duplicate", Chunks: 1, Tokens: 7}},
		Cost:    &cost.Cost{Currency: "USD", Input: 1, Output: 2, Total: 3},
	})
}

func scrape(t *testing.T, tel *telemetry.Telemetry, accept string) string {
	t.Helper()
	req := httptest.NewRequest("GET", "/metrics", nil)
	if accept != "" {
		req.Header.Set("Accept", accept)
	}
	w := httptest.NewRecorder()
	tel.Handler().ServeHTTP(w, req)
	body, err := io.ReadAll(w.Body)
	if err != nil || w.Code != 200 {
		t.Fatalf("scrape: status %d, %v", w.Code, err)
	}
	return string(body)
}

var (
	sampleLine = regexp.MustCompile(`(?m)^([a-zA-Z_:][a-zA-Z0-9_:]*)(\{[^}]*\})? `)
	labelName  = regexp.MustCompile(`([a-zA-Z_][a-zA-Z0-9_]*)\s*(?:=~|!~|!=|=)\s*"`)
)

func parse(text string) series {
	out := series{}
	for _, m := range sampleLine.FindAllStringSubmatch(text, -1) {
		labels := out[m[1]]
		if labels == nil {
			// Prometheus adds these to every series.
			labels = map[string]bool{"instance": true, "job": true}
			out[m[1]] = labels
		}
		for _, l := range labelName.FindAllStringSubmatch(m[2], -1) {
			labels[l[1]] = true
		}
	}
	return out
}

// expression is a query and where it stands.
type expression struct{ where, expr string }

func dashboardQueries(t *testing.T) []expression {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("grafana", "dashboards", "ragd.json"))
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	var out []expression
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			out = append(out, expression{"panel " + p.Title, q.Expr})
		}
	}
	return out
}

type ruleFile struct {
	Groups []struct {
		Name  string
		Rules []struct {
			Record, Alert, Expr string
			For                 string
			Labels, Annotations map[string]string
		}
	}
}

func ruleFiles(t *testing.T) []ruleFile {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("prometheus", "rules", "*.yml"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no rules: %v", err)
	}
	out := make([]ruleFile, len(paths))
	for i, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		dec := yaml.NewDecoder(strings.NewReader(string(data)))
		dec.KnownFields(true)
		if err := dec.Decode(&out[i]); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	return out
}

// words of PromQL that are no metrics.
var promQL = []string{"by", "on", "and", "or", "unless", "without", "ignoring", "group_left", "group_right", "bool", "offset"}

var (
	selector = regexp.MustCompile(`([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(\{[^}]*\})?`)
	grouping = regexp.MustCompile(`\b(?:by|without|on|ignoring)\s*\(([^)]*)\)`)
	duration = regexp.MustCompile(`\[[^\]]*\]`)
	function = regexp.MustCompile(`[a-zA-Z_][a-zA-Z0-9_]*\s*\(`)
)

// metrics lists the selectors of an expression: name → the labels it is matched on.
func metrics(expr string) map[string][]string {
	names := map[string][]string{}
	e := duration.ReplaceAllString(expr, "")
	e = grouping.ReplaceAllString(e, "")
	e = function.ReplaceAllString(e, "(")
	for _, m := range selector.FindAllStringSubmatch(e, -1) {
		if slices.Contains(promQL, m[1]) || regexp.MustCompile(`^e[0-9]+$`).MatchString(m[1]) {
			continue
		}
		names[m[1]] = append(names[m[1]], nil...)
		for _, l := range labelName.FindAllStringSubmatch(m[2], -1) {
			names[m[1]] = append(names[m[1]], l[1])
		}
	}
	return names
}

// Every query of the dashboard and of the rules names metrics that ragd exposes,
// matched and grouped by labels that they have.
func TestQueriesNameWhatRagdExposes(t *testing.T) {
	have := exposed(t)
	have["up"] = map[string]bool{"instance": true, "job": true} // Prometheus makes it
	queries := dashboardQueries(t)
	for _, f := range ruleFiles(t) {
		for _, g := range f.Groups {
			for _, r := range g.Rules {
				queries = append(queries, expression{"rule " + r.Record + r.Alert, r.Expr})
				if r.Record != "" {
					have[r.Record] = map[string]bool{"stage": strings.Contains(r.Expr, "by (stage)")}
				}
			}
		}
	}
	if len(queries) < 60 {
		t.Errorf("only %d queries were found", len(queries))
	}
	for _, q := range queries {
		for _, problem := range problems(have, q.expr) {
			t.Errorf("%s: %s: %s", q.where, problem, q.expr)
		}
	}
}

func problems(have series, expr string) []string {
	var out []string
	grouped := map[string]bool{}
	for _, m := range grouping.FindAllStringSubmatch(expr, -1) {
		for _, l := range strings.Split(m[1], ",") {
			grouped[strings.TrimSpace(l)] = true
		}
	}
	found := metrics(expr)
	if len(found) == 0 {
		out = append(out, "names no metric")
	}
	for name, matched := range found {
		labels, ok := have[name]
		if !ok {
			out = append(out, "there is no metric "+name)
			continue
		}
		for _, l := range matched {
			if !labels[l] {
				out = append(out, name+" has no label "+l)
			}
		}
		for l := range labels {
			delete(grouped, l)
		}
	}
	for l := range grouped {
		out = append(out, "nothing has the label "+l)
	}
	return out
}

// The check above notices what it is there for.
func TestProblemsAreNoticed(t *testing.T) {
	have := series{"a_bucket": {"le": true, "stage": true}, "b": {}}
	for expr, want := range map[string]int{
		`histogram_quantile(0.95, sum by (le) (rate(a_bucket{stage="queue"}[5m])))`: 0,
		`sum(a_bucket) / scalar(sum(b)) > 1e9`:                                      0,
		`sum(a_buckets)`:                                                            1,
		`a_bucket{stages=~"x"}`:                                                     1,
		`sum by (outcome) (a_bucket)`:                                               1,
		`1 + 1`:                                                                     1,
		`b and c`:                                                                   1,
	} {
		if got := problems(have, expr); len(got) != want {
			t.Errorf("%s: %d problems, want %d: %v", expr, len(got), want, got)
		}
	}
}

// Every alert says what is wrong and has a test that makes it fire.
func TestAlertsAreTested(t *testing.T) {
	tests, err := filepath.Glob(filepath.Join("prometheus", "tests", "*.yml"))
	if err != nil {
		t.Fatal(err)
	}
	fires := map[string]bool{}
	for _, path := range tests {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var f struct {
			Tests []struct {
				Alerts []struct {
					Alert string `yaml:"alertname"`
					Want  []any  `yaml:"exp_alerts"`
				} `yaml:"alert_rule_test"`
			}
		}
		if err := yaml.Unmarshal(data, &f); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for _, test := range f.Tests {
			for _, a := range test.Alerts {
				fires[a.Alert] = fires[a.Alert] || len(a.Want) > 0
			}
		}
	}
	alerts := 0
	for _, f := range ruleFiles(t) {
		for _, g := range f.Groups {
			for _, r := range g.Rules {
				if r.Alert == "" {
					continue
				}
				alerts++
				if !fires[r.Alert] {
					t.Errorf("no test makes %s fire", r.Alert)
				}
				if r.For == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
					t.Errorf("%s lacks for, severity, summary or description", r.Alert)
				}
			}
		}
	}
	if alerts < 7 {
		t.Errorf("only %d alerts", alerts)
	}
}

// Each bucket of the first token leads to its trace.
func TestExemplarsCarryTraceIDs(t *testing.T) {
	t.Setenv("OTEL_TRACES_EXPORTER", "none")
	t.Setenv("OTEL_METRICS_EXPORTER", "none")
	ctx := context.Background()
	tel, err := telemetry.New(ctx, telemetry.Config{Version: "test"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer tel.Shutdown(ctx)
	ask(tel)
	trace := tel.Recent(0, 1)[0].TraceID
	text := scrape(t, tel, "application/openmetrics-text; version=1.0.0")
	for _, name := range []string{"ragd_ttft_seconds_bucket", "ragd_request_duration_seconds_bucket", "ragd_stage_duration_seconds_bucket", "gen_ai_server_time_to_first_token_seconds_bucket"} {
		found := false
		for line := range strings.Lines(text) {
			found = found || strings.HasPrefix(line, name) && strings.Contains(line, `trace_id="`+trace+`"`)
		}
		if !found {
			t.Errorf("no bucket of %s leads to the trace %s", name, trace)
		}
	}
}
