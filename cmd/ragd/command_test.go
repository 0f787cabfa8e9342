package main

import (
	"net"
	"strings"
	"syscall"
	"testing"

	"ragd/ingest"
	"ragd/internal/answer"
	"ragd/internal/app"
)

// TestUsage: what makes no sense exits with 2 and says what to write instead.
func TestUsage(t *testing.T) {
	e := bare(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"nonsense"}, `unknown command "nonsense"`},
		{[]string{"serv"}, "did you mean serve"},
		{[]string{"db", "nonsense"}, `unknown command "nonsense"`},
		{[]string{"ask"}, "usage: ragd ask QUESTION"},
		{[]string{"ask", "two", "questions"}, "usage: ragd ask QUESTION"},
		{[]string{"ask", "  "}, "question: is empty"},
		{[]string{"ask", "why?", "--mode", "guess"}, "answer_mode"},
		{[]string{"ask", "why?", "--nonsense"}, "--nonsense"},
		{[]string{"ingest"}, "usage: ragd ingest PATH..."},
		{[]string{"ingest", "x", "-c", strings.Repeat("x", 300)}, "collection: 300 bytes"},
		{[]string{"version", "extra"}, "usage: ragd version"},
		{[]string{"kv", "--tokens", "0"}, "--tokens"},
		{[]string{"kv", "--tokens", "many"}, "many"},
		{[]string{"kv", "--tokens", "4611686018427387904", "--batch", "4"}, "product"},
		{[]string{"bench", "engine", "--threads", "-1"}, "--threads"},
		{[]string{"bench", "embed", "--threads", "-1"}, "--threads"},
		{[]string{"bench", "ask", "--rate", "NaN"}, "--rate"},
		{[]string{"bench", "ask", "--rates", "1,NaN"}, "--rates"},
		{[]string{"models", "--set", "retrieve.top_k=0"}, "retrieve.top_k"},
		{[]string{"models", "--set", "no.such=1"}, "no"},
		{[]string{"models", "--config", "/no/such.yaml"}, "/no/such.yaml"},
	} {
		code, out, errs := e.ragd(t, c.args...)
		if code != exitUsage || !strings.Contains(errs, c.want) || out != "" || !strings.HasPrefix(errs, "ragd: ") {
			t.Errorf("ragd %q: exit %d, %q, %q; want %q", c.args, code, out, errs, c.want)
		}
	}
	if out := e.done(t); !strings.Contains(out, "Available Commands") {
		t.Errorf("ragd alone says %q", out)
	}
	if out := e.done(t, "version"); !strings.HasPrefix(out, "ragd ") || len(strings.Fields(out)) != 2 {
		t.Errorf("version %q", out)
	}
}

// TestServeNeedsKeysBeyondLoopback, and an address of its own.
func TestServeAddress(t *testing.T) {
	e := bare(t)
	for _, addr := range []string{"0.0.0.0:0", ":0", "[::]:0"} {
		if code, _, errs := e.ragd(t, "serve", "--addr", addr); code != exitFailed || !strings.Contains(errs, "server.keys") {
			t.Errorf("%s: exit %d, %q", addr, code, errs)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if code, _, errs := e.ragd(t, "serve", "--addr", l.Addr().String()); code != exitFailed || !strings.Contains(errs, "is in use") {
		t.Errorf("a taken address: exit %d, %q", code, errs)
	}
}

// TestKV: the formula of 30 layers of 3 heads of 64 numbers of two bytes, twice; in q8_0
// 32 of them take 34 bytes, in fp8 33.
func TestKV(t *testing.T) {
	e := furnished(t)
	r := decode[kvReport](t, e.done(t, "kv", "--tokens", "1000", "--batch", "3", "--json"))
	if r.BytesPerToken != 30*3*64*2*2 || r.Bytes != 3000*r.BytesPerToken {
		t.Errorf("%+v", r)
	}
	r = decode[kvReport](t, e.done(t, "kv", "--tokens", "1000", "--set", "inference.kv_cache_type=q8_0", "--json"))
	if r.BytesPerToken != 30*3*64*2*34/32 || r.Bytes != 1000*r.BytesPerToken || r.CacheType != "q8_0" {
		t.Errorf("%+v", r)
	}
	r = decode[kvReport](t, e.done(t, "kv", "--tokens", "1000", "--set", "inference.kv_cache_type=fp8", "--json"))
	if r.BytesPerToken != 30*3*64*2*33/32 || r.CacheType != "fp8" {
		t.Errorf("%+v", r)
	}
	if out := e.done(t, "kv", "--tokens", "1024"); !strings.Contains(out, "22.5 KiB a token") || !strings.Contains(out, "22.5 MiB") {
		t.Errorf("%q", out)
	}
	if code, _, errs := e.ragd(t, "kv", "--model", "/no/such.gguf"); code != exitFailed || !strings.Contains(errs, "/no/such.gguf") {
		t.Errorf("exit %d, %q", code, errs)
	}
}

// A measurement is not lost with a picture that cannot be written.
func TestBenchPrintsBeforeItDraws(t *testing.T) {
	e := furnished(t)
	code, out, errs := e.ragd(t, "bench", "engine", "--tests", "pp16", "--pairs", "1", "--svg", "/no/such/folder.svg")
	if code != exitFailed || !strings.Contains(out, "pp16") || !strings.Contains(errs, "/no/such/folder.svg") {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
}

func TestModelsAndDoctor(t *testing.T) {
	e := bare(t)
	rows := decode[[]modelRow](t, e.done(t, "models", "--json"))
	names := map[string]bool{}
	for _, r := range rows {
		if names[r.Name] = true; r.Here || r.Path != "" || r.Bytes == 0 {
			t.Errorf("an empty data folder has %+v", r)
		}
	}
	if !names["smollm2-135m-instruct"] || !names["multilingual-e5-small"] || !names["postgres"] {
		t.Errorf("models %v", names)
	}
	if out := e.done(t, "models"); strings.Count(out, "\n") != len(rows)+1 {
		t.Errorf("the table is %q", out)
	}
	code, out, _ := e.ragd(t, "doctor", "--json")
	found := map[string]app.Check{}
	for _, c := range decode[[]app.Check](t, out) {
		found[c.Name] = c
	}
	if code != exitFailed || !strings.Contains(found["answer model"].Problem, "ragd pull smollm2-135m-instruct") || found["cpu"].Found == "" {
		t.Errorf("exit %d, %+v", code, found)
	}
	full := furnished(t)
	for _, c := range decode[[]app.Check](t, full.done(t, "doctor", "--json")) {
		if c.Problem != "" || c.Found == "" {
			t.Errorf("%+v", c)
		}
	}
	if out := full.done(t, "doctor"); strings.Contains(out, "PROBLEM") || !strings.Contains(out, "PostgreSQL") {
		t.Errorf("%s", out)
	}
}

// TestInProcess runs the commands where no server answers.
func TestInProcess(t *testing.T) {
	e := furnished(t)
	code, _, errs := e.ragd(t, "ask", "Where is the key?")
	if code != exitFailed || !strings.Contains(errs, "ragd ingest PATH") {
		t.Errorf("nothing was ingested: exit %d, %q", code, errs)
	}
	dir := corpus(t, 3)
	e.done(t, "ingest", dir, "-c", "rooms")
	answers(t, e)

	code, out, errs := e.ragd(t, "ingest", dir, dir+"/none.md", "-c", "rooms")
	if code != exitPartly || !strings.Contains(out, "failed") || !strings.Contains(out, "none.md") || errs != "" {
		t.Errorf("a file that is not there: exit %d, %q, %q", code, out, errs)
	}
	report := decode[ingest.Report](t, e.done(t, "ingest", dir, "-c", "rooms", "--json"))
	if report.Unchanged != 3 || len(report.Files) != 3 {
		t.Errorf("%+v", report)
	}
	e.vars = append(e.vars, "RAGD_DATABASE_URL=postgres:///ragd?host="+t.TempDir())
	if code, out, errs := e.ragd(t, "ingest", dir); code != exitFailed || out != "" || !strings.Contains(errs, "database") {
		t.Errorf("no database: exit %d, %q, %q", code, out, errs)
	}
}

// answers asks the same of whatever serves the commands.
func answers(t *testing.T, e *env) {
	t.Helper()
	res := decode[answer.Result](t, e.done(t, "ask", "Where does the key of room 2 hang?", "-c", "rooms", "--json", "--mode", "extract"))
	if !strings.Contains(res.Answer, "K-002") || len(res.Sources.Cited) == 0 {
		t.Errorf("%+v", res)
	}
	out := e.done(t, "ask", "Where does the key of room 2 hang?", "-c", "rooms", "--mode", "extract")
	for _, want := range []string{"K-002", "[", "room002.md", "tokens", "milliseconds", "total"} {
		if !strings.Contains(out, want) {
			t.Errorf("the answer shows no %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "\033") {
		t.Errorf("a pipe gets escape sequences: %q", out)
	}
	found := decode[answer.SearchResult](t, e.done(t, "search", "room 1", "-c", "rooms", "--json", "-k", "2"))
	if len(found.Results) != 2 {
		t.Errorf("%d results", len(found.Results))
	}
	if code, _, errs := e.ragd(t, "search", "room 1", "-c", "rooms", "-k", "0"); code != exitUsage || !strings.Contains(errs, "top_k") {
		t.Errorf("top_k 0: exit %d, %q", code, errs)
	}
	if code, _, errs := e.ragd(t, "ask", "Why?", "-c", "elsewhere"); code != exitFailed || !strings.Contains(errs, "--collection elsewhere") {
		t.Errorf("an unknown collection: exit %d, %q", code, errs)
	}
}

// TestWithServer runs the commands through a server, which Ctrl-C stops cleanly.
func TestWithServer(t *testing.T) {
	e := furnished(t)
	server := e.serve(t)
	dir := corpus(t, 3)
	if out := e.done(t, "ingest", dir, "-c", "rooms"); !strings.Contains(out, "3 found: 3 indexed") {
		t.Errorf("%q", out)
	}
	answers(t, e)
	e.done(t, "doctor", "--ready")
	if code, _, _ := e.ragd(t, "ingest", dir+"/none.md", "-c", "rooms"); code != exitPartly {
		t.Errorf("a file that is not there: exit %d", code)
	}
	many := corpus(t, 400)
	interrupted(t, e, "many", "ingest", many, "-c", "many", "--json")
	if err := server.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := server.Wait(); err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if code, _, errs := e.ragd(t, "doctor", "--ready"); code != exitFailed || errs == "" {
		t.Errorf("a server that is gone: exit %d, %q", code, errs)
	}
}

// TestInterruptedIngest: what was stored stays, the rest is told, and the same
// command goes on from there.
func TestInterruptedIngest(t *testing.T) {
	e := furnished(t)
	many := corpus(t, 400)
	interrupted(t, e, "many", "ingest", many, "-c", "many", "--json")
}

func interrupted(t *testing.T, e *env, collection string, args ...string) {
	t.Helper()
	code, out, errs := e.interrupt(t, collection, args...)
	r := decode[ingest.Report](t, out)
	if code != exitInterrupted || !r.Interrupted || errs != "ragd: interrupted\n" {
		t.Errorf("exit %d, %q, interrupted %v", code, errs, r.Interrupted)
	}
	if r.Indexed < 1 || r.Remaining < 1 || r.Indexed+r.Remaining != r.Found {
		t.Errorf("%d found, %d indexed, %d not reached", r.Found, r.Indexed, r.Remaining)
	}
	if stored := e.documents(t, collection); stored != r.Indexed {
		t.Errorf("%d documents are stored, the report says %d", stored, r.Indexed)
	}
}
