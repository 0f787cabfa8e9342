package app

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// completed is what a client of OpenAI reads.
type completed struct {
	Choices []struct {
		Message      struct{ Content string }
		FinishReason string `json:"finish_reason"`
	}
	Usage struct {
		PromptTokens     int `json:"prompt_tokens"`
		CompletionTokens int `json:"completion_tokens"`
		Details          struct {
			CachedTokens int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
	Citations []json.RawMessage
	Ragd      struct {
		TraceID string `json:"trace_id"`
		Ledger  struct{ Template, System, Question int }
	}
}

func (l *live) complete(t *testing.T, req body) completed {
	t.Helper()
	status, data := l.call(t, "/v1/chat/completions", req)
	var c completed
	if err := json.Unmarshal([]byte(data), &c); err != nil || status != http.StatusOK {
		t.Fatalf("%v: %d %s (%v)", req, status, data, err)
	}
	return c
}

// TestOpenAIRoutes: the engine and the encoders, in the forms that clients know.
func TestOpenAIRoutes(t *testing.T) {
	l := start(t, settings(t))
	model := l.models()[0].ID
	for name, test := range map[string]func(*testing.T, *live, string){
		"chat": testPlainChat, "documents": testChatFromDocuments, "json": testJSONAnswers, "cancel": testChatCancel, "texts": testTexts,
	} {
		t.Run(name, func(t *testing.T) { test(t, l, model) })
	}
}

func user(model, text string) body {
	return body{"model": model, "messages": []body{{"role": "user", "content": text}}}
}

func testPlainChat(t *testing.T, l *live, model string) {
	req := body{"model": model, "max_tokens": 12, "messages": []body{{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is the capital of France?"}}}
	first := l.complete(t, req)
	if text := first.Choices[0].Message.Content; !strings.Contains(text, "Paris") {
		t.Errorf("answer %q", text)
	}
	u, g := first.Usage, first.Ragd.Ledger
	if sum := g.Template + g.System + g.Question; u.PromptTokens != sum || g.System == 0 || g.Question == 0 {
		t.Errorf("%d prompt tokens, ledger %+v", u.PromptTokens, g)
	}
	again := l.complete(t, req)
	if again.Usage.Details.CachedTokens == 0 || again.Choices[0].Message.Content != first.Choices[0].Message.Content {
		t.Errorf("asked again: %+v", again)
	}
	if row := l.log.row(t, again.Ragd.TraceID); row["output_tokens"] != float64(again.Usage.CompletionTokens) || row["input_tokens"] != float64(u.PromptTokens) {
		t.Errorf("log row %v", row)
	}
	short := l.complete(t, user(model, "Count to a hundred.").with(body{"max_tokens": 3}))
	if short.Choices[0].FinishReason != "length" || short.Usage.CompletionTokens != 3 {
		t.Errorf("cut short: %+v", short)
	}
	if status, data := l.call(t, "/v1/chat/completions", user(model, strings.Repeat("word ", 9000))); status != 400 || !strings.Contains(data, "context_length_exceeded") {
		t.Errorf("over the window: %d %s", status, data)
	}
}

func testChatFromDocuments(t *testing.T, l *live, _ string) {
	name := l.notes(t)
	got := l.complete(t, user("ragd/"+name, "What is the signal code?").with(body{"max_tokens": 20}))
	if len(got.Citations) == 0 || !strings.Contains(got.Choices[0].Message.Content, "moss & heather") {
		t.Errorf("%+v", got)
	}
	if status, data := l.call(t, "/v1/models/ragd/"+name, nil); status != http.StatusMethodNotAllowed {
		t.Errorf("POST of a model: %d %s", status, data)
	}
}

// testJSONAnswers: the answer parses at its end, or length says that there is none.
func testJSONAnswers(t *testing.T, l *live, model string) {
	schema := body{"type": "json_schema", "json_schema": body{"schema": body{
		"type": "object", "required": []string{"name", "age", "kind"},
		"properties": body{
			"name": body{"type": "string", "maxLength": 20}, "age": body{"type": "integer", "minimum": 1, "maximum": 99}, "kind": body{"enum": []string{"cat", "dog"}},
		},
	}}}
	got := l.complete(t, user(model, "Make up a pet.").with(body{"response_format": schema, "max_tokens": 200, "temperature": 1.5, "seed": 5}))
	var pet struct {
		Name, Kind string
		Age        int
	}
	text := got.Choices[0].Message.Content
	if err := json.Unmarshal([]byte(text), &pet); err != nil || got.Choices[0].FinishReason != "stop" || pet.Age < 1 || pet.Age > 99 || pet.Kind != "cat" && pet.Kind != "dog" {
		t.Errorf("%q %s: %v", text, got.Choices[0].FinishReason, err)
	}
	res := l.asked(t, body{"question": "What is the signal code?", "collection": l.notes(t), "response_format": schema, "budget": body{"answer_tokens": 200}})
	if err := json.Unmarshal([]byte(res.Answer), &pet); err != nil || res.Kind != "generated" || len(res.Citations) != 0 {
		t.Errorf("/ask: %q: %v", res.Answer, err)
	}
	bad := body{"type": "json_schema", "json_schema": body{"schema": body{"type": "string", "pattern": "a"}}}
	if field, message := l.refused(t, body{"question": "q", "response_format": bad}, 400, "invalid"); field != "response_format.json_schema.schema" || !strings.Contains(message, "pattern") {
		t.Errorf("%s: %s", field, message)
	}
}

// testChatCancel: a client that goes away frees its place.
func testChatCancel(t *testing.T, l *live, model string) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	resp, err := l.post(t, ctx, "/v1/chat/completions", user(model, "Tell a story.").with(body{"stream": true, "max_tokens": 2000, "temperature": 10, "seed": 7}))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for range 6 {
		lines.Scan()
	}
	cancel()
	for end := time.Now().Add(20 * time.Second); l.gen.engine.Stats().Running > 0 || len(l.log.rows("cancelled")) == 0; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the answer still runs")
		}
	}
}

func testTexts(t *testing.T, l *live, _ string) {
	before := l.metric(t, "ragd_chunks_retrieved_count")
	var list struct {
		Data  []struct{ Embedding []float32 }
		Usage struct {
			TotalTokens int `json:"total_tokens"`
		}
	}
	embed := func(kind string) {
		status, data := l.call(t, "/v1/embeddings", body{"model": l.models()[1].ID, "input": []string{"the violet lamp", "보라색 등"}, "input_type": kind})
		if err := json.Unmarshal([]byte(data), &list); err != nil || status != 200 {
			t.Fatalf("%d %s: %v", status, data, err)
		}
	}
	embed("query")
	want, tokens, err := l.embed.EmbedQuery(t.Context(), "the violet lamp")
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range list.Data[0].Embedding {
		if v != want[i] {
			t.Fatalf("value %d is %g, want %g", i, v, want[i])
		}
	}
	if list.Usage.TotalTokens <= tokens {
		t.Errorf("%d tokens for two texts, %d for the first", list.Usage.TotalTokens, tokens)
	}
	embed("passage")
	if list.Data[0].Embedding[0] == want[0] {
		t.Error("passages are encoded like queries")
	}
	if status, data := l.call(t, "/v1/embeddings", body{"model": l.models()[1].ID, "input": []string{"a", strings.Repeat("word ", 600)}}); status != 400 || !strings.Contains(data, "input[1]") {
		t.Errorf("too long: %d %s", status, data)
	}
	status, data := l.call(t, "/v1/rerank", body{"query": "Where is the pier?", "documents": []string{"Bananas are yellow.", "The pier stands at the harbour."}, "top_n": 1})
	if status != 200 || !strings.Contains(data, `"results":[{"index":1,`) {
		t.Errorf("rerank: %d %s", status, data)
	}
	// The tokens that were read are counted, and no chunks: nothing was searched.
	for _, operation := range []string{"embeddings", "rerank"} {
		read := l.metric(t, `gen_ai_client_token_usage_sum{gen_ai_operation_name="`+operation+`"`)
		if read == "" || read == "0" {
			t.Errorf("%s read %q tokens", operation, read)
		}
	}
	if after := l.metric(t, "ragd_chunks_retrieved_count"); after != before {
		t.Errorf("searches counted before %s, after %s", before, after)
	}
}

// metric is the value of the first sample whose line begins so, or empty.
func (l *live) metric(t *testing.T, begins string) string {
	t.Helper()
	w := httptest.NewRecorder()
	l.tel.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	for line := range strings.Lines(w.Body.String()) {
		if strings.HasPrefix(line, begins) {
			return line[strings.LastIndex(line, " ")+1 : len(line)-1]
		}
	}
	return ""
}
