//go:build browser

package webui

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"ragd/telemetry"
	"ragd/telemetry/cost"
)

// hostile is what a question, a collection or a model may be called.
const hostile = `"><img src=x onerror="window.hacked=1"><script>window.hacked=1</script>`

// newestTokens is the length of the newest prompt, for which nothing was dropped.
const newestTokens = 690

// ask finishes one request with n input tokens that ran through every stage.
func ask(tel *telemetry.Telemetry, n int) {
	ctx, r := tel.Begin(context.Background(), "POST /ask", time.Now())
	for _, s := range []telemetry.Stage{telemetry.StageRetrieval, telemetry.StageRerank, telemetry.StagePack, telemetry.StageRender} {
		_, end := r.Begin(ctx, s, "")
		time.Sleep(time.Millisecond)
		end(nil)
	}
	at := time.Now()
	first := at.Add(time.Duration(n) * time.Millisecond / 2)
	last := first.Add(39 * 10 * time.Millisecond)
	r.Generation(ctx, telemetry.EngineTimes{Submitted: at, Scheduled: at.Add(5 * time.Millisecond), FirstToken: first, Last: last, OutputTokens: 40}, last)
	r.FirstWrite(first)
	var dropped []telemetry.Dropped
	if n != newestTokens {
		dropped = []telemetry.Dropped{{Reason: "max_chunks", Chunks: 18, Tokens: 2000}}
	}
	r.End(ctx, r.Timings(last.Add(time.Millisecond)), telemetry.Summary{
		ID: "ask_" + r.SpanID(), Outcome: telemetry.Answered, AnswerKind: "generated", FinishReason: "stop", Collection: hostile, Model: hostile,
		Question: hostile, InputTokens: n, OutputTokens: 40, CachedTokens: n % 3, RetrievedChunks: 20, UsedChunks: 2,
		Prompt:  telemetry.PromptTokens{Template: 20, Question: 10, Evidence: []int{n / 2, n - n/2 - 30}},
		Dropped: dropped,
		Cost:    &cost.Cost{Currency: "USD", Input: 105_000, CachedInput: 22_501, Output: 30_000, Total: 157_501},
	})
}

// browser is a page and what it complained of.
type browser struct {
	t   *testing.T
	ctx context.Context
	url string

	mu       sync.Mutex
	problems []string
}

func open(t *testing.T, tel *telemetry.Telemetry) *browser {
	t.Helper()
	b := visit(t, Data(tel))
	b.wait("the charts are drawn", `document.querySelectorAll("#last rect.part").length > 0`)
	return b
}

// visit opens the page over what serves its data.
func visit(t *testing.T, data http.Handler) *browser {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(prefix, Latency(prefix))
	mux.Handle(prefix+"/", Latency(prefix))
	mux.Handle(prefix+"/data", data)
	srv := httptest.NewServer(mux)
	t.Cleanup(srv.Close)
	flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()),
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true))
	alloc, cancel := chromedp.NewExecAllocator(context.Background(), flags...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	b := &browser{t: t, ctx: ctx, url: srv.URL + prefix}
	if err := chromedp.Listen(ctx, b.listen); err != nil {
		t.Fatal(err)
	}
	b.run(chromedp.Navigate(b.url))
	return b
}

func (b *browser) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, "exception: "+e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		b.problems = append(b.problems, fmt.Sprintf("console %s", e.Type))
	case *network.EventRequestWillBeSent:
		if !strings.HasPrefix(e.Request.URL, b.url) && !strings.HasPrefix(e.Request.URL, "data:") {
			b.problems = append(b.problems, "request to "+e.Request.URL)
		}
	}
}

func (b *browser) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

// result is the value of an action.
func result[T any](b *browser, a chromedp.Action[T]) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, a)
	if err != nil {
		b.t.Fatal(err)
	}
	return v
}

// prefer sets prefers-color-scheme.
func prefer(scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	})
}

// value evaluates an expression on the page.
func value[T any](b *browser, expr string) T {
	b.t.Helper()
	return result(b, chromedp.Evaluate[T](expr))
}

func (b *browser) wait(what, condition string) {
	b.t.Helper()
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if value[bool](b, condition) {
			return
		}
	}
	b.t.Fatalf("%s: never", what)
}

func (b *browser) quiet() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.problems {
		b.t.Error(p)
	}
}

func filled(t *testing.T) *telemetry.Telemetry {
	t.Helper()
	tel := newTelemetry(t, true)
	for i := range 60 {
		ask(tel, newestTokens-10*(59-i))
	}
	return tel
}

// At every width, dark and light: all charts are drawn and nothing sticks out.
// The pictures lie in the folder of `go test -artifacts`.
func TestPageAtEveryWidth(t *testing.T) {
	b := open(t, filled(t))
	for _, width := range []int64{360, 768, 1280} {
		for _, scheme := range []string{"light", "dark"} {
			b.run(prefer(scheme), chromedp.EmulateViewport(width, 900))
			b.wait("redrawn", fmt.Sprintf(`document.querySelector("#last svg").getAttribute("width") < %d`, width))
			if over := value[int](b, `document.documentElement.scrollWidth - innerWidth`); over > 0 {
				t.Errorf("%d px %s: the page is %d px too wide", width, scheme, over)
			}
			for chart, mark := range map[string]string{"last": "rect.part", "time": "rect.part", "ttft": "circle", "total": "circle", "waterfall": "rect.part", "prompt": "i", "cohorts": "i", "tiles": "rect", "table": "tbody tr"} {
				if n := value[int](b, fmt.Sprintf(`document.querySelectorAll("#%s %s").length`, chart, mark)); n == 0 {
					t.Errorf("%d px %s: nothing in %s", width, scheme, chart)
				}
			}
			if text := value[string](b, `document.body.innerText`); regexp.MustCompile(`null|undefined|NaN|Infinity`).MatchString(text) {
				t.Errorf("%d px %s: the page shows a value that is none:\n%s", width, scheme, text)
			}
			picture := result(b, chromedp.FullScreenshot(100))
			if err := os.WriteFile(filepath.Join(t.ArtifactDir(), fmt.Sprintf("latency-%d-%s.png", width, scheme)), picture, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.quiet()
}

// Costs are those of the records: exact for one request, summed up in the tiles.
func TestCosts(t *testing.T) {
	b := open(t, filled(t))
	b.run(chromedp.EmulateViewport(1280, 900))
	b.wait("the prompt", `document.querySelectorAll("#prompt i").length > 0`)
	for where, want := range map[string]string{
		"prompt": "0.000157501 USD: input 0.000105, cached input 0.000022501, output 0.00003", "tiles": "0.00945 USD",
	} {
		if text := value[string](b, fmt.Sprintf(`document.querySelector("#%s").innerText`, where)); !strings.Contains(text, want) {
			t.Errorf("%s has no %q: %s", where, want, text)
		}
	}
	b.quiet()
}

// The page asks for a key, says what is wrong with one that does not serve, and draws
// with one that does.
func TestKeys(t *testing.T) {
	data := Data(filled(t))
	b := visit(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.Header.Get("Authorization") {
		case "Bearer admin":
			data.ServeHTTP(w, r)
		case "Bearer ask":
			w.WriteHeader(http.StatusForbidden)
		default:
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	form := func(says string) string {
		return fmt.Sprintf(`!document.getElementById("key-form").hidden && document.getElementById("main").hidden && document.querySelector("#key-form p").textContent.includes(%q)`, says)
	}
	b.wait("the form", form("this server only"))
	for _, key := range []struct{ secret, says string }{{"ask", "its role is not admin"}, {"other", "not known here"}} {
		b.run(chromedp.Focus("#key"), chromedp.KeyEvent(key.secret), chromedp.KeyEvent(kb.Enter))
		b.wait("what is wrong with the key "+key.secret, form(key.says))
	}
	b.run(chromedp.Focus("#key"), chromedp.KeyEvent("admin"), chromedp.KeyEvent(kb.Enter))
	b.wait("the charts are drawn", `document.getElementById("key-form").hidden && document.querySelectorAll("#last rect.part").length > 0`)
	b.quiet()
}

func TestHostileTextStaysText(t *testing.T) {
	b := open(t, filled(t))
	if got := value[string](b, `document.getElementById("question").textContent`); got != hostile {
		t.Errorf("the question reads %q", got)
	}
	if n := value[int](b, `document.querySelectorAll("main img, main script").length`); n > 0 || value[bool](b, `"hacked" in window`) {
		t.Errorf("text became markup: %d elements", n)
	}
	b.quiet()
}

// A request that was refused at the door has no stage, token or first token.
func TestNothingToDraw(t *testing.T) {
	tel := filled(t)
	ctx, r := tel.Begin(context.Background(), "POST /ask", time.Now())
	r.End(ctx, r.Timings(time.Now()), telemetry.Summary{ID: "ask_bad", Outcome: telemetry.Rejected, ErrorCode: "invalid"})
	b := open(t, tel)
	b.run(chromedp.Evaluate[chromedp.Void](`document.getElementById("outcome").value = "failed"; document.getElementById("outcome").dispatchEvent(new Event("change"))`))
	b.wait("only the refused one is left", `document.querySelectorAll("#table tbody tr").length === 1`)
	for _, chart := range []string{"ttft", "total", "waterfall"} {
		if text := value[string](b, fmt.Sprintf(`document.getElementById(%q).innerText`, chart)); text == "" || value[bool](b, fmt.Sprintf(`document.querySelector("#%s svg") !== null`, chart)) {
			t.Errorf("%s does not say that there is nothing: %q", chart, text)
		}
	}
	b.quiet()
}

// With the keyboard alone: walk to a bar, open it, come back, search a trace.
func TestKeyboard(t *testing.T) {
	tel := filled(t)
	b := open(t, tel)
	records := tel.Recent(0, 100)
	third := records[len(records)-3]
	b.run(chromedp.Focus("#last"), chromedp.KeyEvent(kb.ArrowLeft), chromedp.KeyEvent(kb.ArrowLeft), chromedp.KeyEvent(kb.ArrowLeft))
	if note := value[string](b, `document.getElementById("last-note").textContent`); !strings.Contains(note, third.TraceID[:8]) {
		t.Errorf("three steps from the right are %q, want trace %s", note, third.TraceID)
	}
	b.run(chromedp.KeyEvent(kb.Enter))
	b.wait("the request is open", fmt.Sprintf(`location.hash === "#%s" && document.getElementById("facts").textContent.includes(%q)`, third.ID, third.TraceID))
	b.run(chromedp.KeyEvent(kb.Escape))
	b.wait("the newest is back", fmt.Sprintf(`document.getElementById("facts").textContent.includes(%q)`, records[len(records)-1].TraceID))
	b.run(chromedp.Focus("#search"), chromedp.KeyEvent(records[0].TraceID[:12]), chromedp.KeyEvent(kb.Enter))
	b.wait("the trace is found", fmt.Sprintf(`location.hash === "#%s" && document.querySelectorAll("#table tbody tr").length === 1`, records[0].ID))
	b.quiet()
}

// The page says what the API says, and takes in what finishes while it is open.
func TestLiveAndEqual(t *testing.T) {
	tel := filled(t)
	b := open(t, tel)
	ask(tel, 777)
	newest := tel.Recent(60, 1)[0]
	b.wait("the new request is shown", fmt.Sprintf(`document.getElementById("facts").textContent.includes(%q)`, newest.TraceID))
	var ms struct {
		Total   float64 `json:"total_ms"`
		Prefill float64 `json:"prefill_ms"`
	}
	data, err := json.Marshal(newest.Timings)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &ms); err != nil {
		t.Fatal(err)
	}
	label := strings.ReplaceAll(value[string](b, `document.getElementById("waterfall").getAttribute("aria-label")`), ",", "")
	for _, want := range []string{fmt.Sprintf("prefill %v ms", ms.Prefill), fmt.Sprintf("Total %v ms", ms.Total)} {
		if !strings.Contains(label, want) {
			t.Errorf("the waterfall says %q, want %q", label, want)
		}
	}
	// Half a millisecond a token is what these requests were made with.
	if fit := value[string](b, `document.getElementById("ttft-fit").textContent`); !strings.HasPrefix(fit, "0.5 ms per token") {
		t.Errorf("the fitted line reads %q", fit)
	}
	b.quiet()
}
