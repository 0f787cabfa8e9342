package httpapi

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"ragd/internal/answer"
)

const completionsPath = "/v1/chat/completions"

func TestCompletion(t *testing.T) {
	asker := &fakeAsker{}
	srv := newServer(t, asker)
	resp, body := post(t, srv.URL+completionsPath, `{"model":"small","messages":[
		{"role":"developer","content":"Be brief."},{"role":"user","content":[{"type":"text","text":"왜"},{"type":"text","text":"?"}]},
		{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{}"}}]},
		{"role":"tool","tool_call_id":"c1","content":"3"}],
		"max_completion_tokens":9,"temperature":0.5,"seed":3,"stop":"x","n":1,"logprobs":false,"tools":[],"user":"u"}`)
	if resp.StatusCode != 200 {
		t.Fatalf("%d %s", resp.StatusCode, body)
	}
	want := []answer.Message{{Role: "system", Content: "Be brief."}, {Role: "user", Content: "왜?"}, {Role: "assistant", Content: `{"arguments":"{}","name":"f"}`}, {Role: "tool", Content: "3"}}
	if !reflect.DeepEqual(asker.chat.Messages, want) {
		t.Errorf("messages %+v", asker.chat.Messages)
	}
	if *asker.chat.MaxTokens != 9 || *asker.chat.Sampling.Seed != 3 || asker.chat.Sampling.Stop[0] != "x" {
		t.Errorf("asked %+v", asker.chat)
	}
	var got struct {
		ID, Object, Model string
		Choices           []struct {
			Message      struct{ Role, Content string }
			FinishReason string `json:"finish_reason"`
		}
		Usage struct {
			Prompt  int `json:"prompt_tokens"`
			Output  int `json:"completion_tokens"`
			Total   int `json:"total_tokens"`
			Details struct {
				Cached int `json:"cached_tokens"`
			} `json:"prompt_tokens_details"`
		}
	}
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	c := got.Choices[0]
	if got.Object != "chat.completion" || got.Model != "small" || c.Message.Role != "assistant" || c.Message.Content != "가나다 <b>" || c.FinishReason != "stop" {
		t.Errorf("%s", body)
	}
	if u := got.Usage; u.Prompt != 7 || u.Output != 3 || u.Total != 10 || u.Details.Cached != 2 {
		t.Errorf("usage %+v", u)
	}
}

// With retrieval: the model's name says so, and which collection.
func TestCompletionFromDocuments(t *testing.T) {
	asker := &fakeAsker{}
	srv := newServer(t, asker)
	resp, body := post(t, srv.URL+completionsPath, `{"model":"ragd/notes","messages":[{"role":"system","content":"S"},{"role":"user","content":"one"},
		{"role":"assistant","content":"two"},{"role":"user","content":"three?"}],"max_tokens":5,"ragd":{"top_k":3,"budget":{"context_tokens":40},"filters":{"path_prefix":"a/"}}}`)
	r := asker.got
	if resp.StatusCode != 200 || r.Collection != "notes" || r.Question != "three?" || r.System != "S" || len(r.History) != 2 || *r.TopK != 3 || *r.Budget.AnswerTokens != 5 || *r.Budget.ContextTokens != 40 || r.Filters.PathPrefix != "a/" || r.Route != answer.RouteChat {
		t.Errorf("%d %s: asked %+v", resp.StatusCode, body, r)
	}
	if !strings.Contains(body, `"sources"`) {
		t.Errorf("no sources: %s", body)
	}
}

// chunks splits a stream of nameless events.
func chunks(t *testing.T, body string) (list []string, done bool) {
	t.Helper()
	for block := range strings.SplitSeq(strings.TrimSuffix(body, "\n\n"), "\n\n") {
		data, ok := strings.CutPrefix(block, "data: ")
		if !ok {
			t.Fatalf("event %q", block)
		}
		if data == "[DONE]" {
			done = true
			continue
		}
		list = append(list, data)
	}
	return list, done
}

func TestCompletionStream(t *testing.T) {
	srv := newServer(t, &fakeAsker{})
	for _, model := range []string{"small", "ragd"} {
		resp, body := post(t, srv.URL+completionsPath, `{"model":"`+model+`","messages":[{"role":"user","content":"q"}],"stream":true,"stream_options":{"include_usage":true}}`)
		if id := resp.Header.Get("X-Trace-Id"); id != "trace-1" {
			t.Errorf("X-Trace-Id %q", id)
		}
		if ct := resp.Header.Get("Content-Type"); !strings.HasPrefix(ct, "text/event-stream") {
			t.Errorf("content type %q", ct)
		}
		list, done := chunks(t, body)
		if !done || len(list) != 5 {
			t.Fatalf("%d chunks, done %v: %s", len(list), done, body)
		}
		text := ""
		for i, data := range list {
			var c struct {
				Object  string
				Choices []struct {
					Delta        struct{ Role, Content string }
					FinishReason *string `json:"finish_reason"`
				}
				Usage     *completionUsage
				Citations []answer.Citation
			}
			if err := json.Unmarshal([]byte(data), &c); err != nil || c.Object != "chat.completion.chunk" {
				t.Fatalf("%s: %v", data, err)
			}
			switch {
			case i == 4:
				if len(c.Choices) != 0 || c.Usage == nil {
					t.Errorf("the usage chunk is %s", data)
				}
				continue
			case i == 0 && c.Choices[0].Delta.Role != "assistant", !strings.Contains(data, `"usage":null`), (c.Choices[0].FinishReason != nil) != (i == 3):
				t.Errorf("chunk %d: %s", i, data)
			}
			text += c.Choices[0].Delta.Content
		}
		if text != "가나다 <b>" {
			t.Errorf("text %q", text)
		}
	}
}

func TestCompletionErrors(t *testing.T) {
	ask := `{"model":"small","messages":[{"role":"user","content":"q"}]`
	for name, c := range map[string]struct {
		body   string
		err    error
		status int
		code   string
		param  string
	}{
		"unknown field":    {body: ask + `,"mesages":1}`, status: 400, code: "invalid_value", param: "mesages"},
		"no model":         {body: `{"messages":[]}`, status: 400, code: "invalid_value", param: "model"},
		"other model":      {body: `{"model":"gpt-4o","messages":[]}`, status: 404, code: "model_not_found", param: "model"},
		"n":                {body: ask + `,"n":2}`, status: 400, code: "invalid_value", param: "n"},
		"logprobs":         {body: ask + `,"logprobs":true}`, status: 400, code: "invalid_value", param: "logprobs"},
		"tools":            {body: ask + `,"tools":[{}]}`, status: 400, code: "invalid_value", param: "tools"},
		"image":            {body: `{"model":"small","messages":[{"role":"user","content":[{"type":"image_url"}]}]}`, status: 400, code: "invalid_value", param: "messages.content.type"},
		"options unasked":  {body: ask + `,"stream_options":{}}`, status: 400, code: "invalid_value", param: "stream_options"},
		"ragd on plain":    {body: ask + `,"ragd":{}}`, status: 400, code: "invalid_value", param: "ragd"},
		"question missing": {body: `{"model":"ragd","messages":[{"role":"assistant","content":"q"}]}`, status: 400, code: "invalid_value", param: "messages"},
		"busy":             {body: ask + `}`, err: &answer.Error{Code: answer.Busy, Message: "full", RetryAfter: 1}, status: 429, code: "rate_limit_exceeded"},
		"window":           {body: ask + `}`, err: &answer.Error{Code: answer.OverBudget, Message: "long"}, status: 400, code: "context_length_exceeded"},
		"internal":         {body: ask + `}`, err: http.ErrAbortHandler, status: 500, code: "internal_error"},
		"streamed, early":  {body: ask + `,"stream":true}`, err: &answer.Error{Code: answer.Busy, Message: "full"}, status: 429, code: "rate_limit_exceeded"},
	} {
		resp, body := post(t, newServer(t, &fakeAsker{err: c.err}).URL+completionsPath, c.body)
		var got openAIError
		if err := json.Unmarshal([]byte(body), &got); err != nil {
			t.Errorf("%s: %s: %v", name, body, err)
			continue
		}
		param := ""
		if got.Error.Param != nil {
			param = *got.Error.Param
		}
		if resp.StatusCode != c.status || got.Error.Code != c.code || param != c.param || got.Error.Type == "" || got.Error.Message == "" {
			t.Errorf("%s: %d %s", name, resp.StatusCode, body)
		}
		if strings.Contains(body, "abort Handler") {
			t.Errorf("%s: internals are returned: %s", name, body)
		}
	}
	resp, body := post(t, newServer(t, &fakeAsker{}, strings.Repeat("00", 32)).URL+completionsPath, ask+`}`)
	if resp.StatusCode != 401 || !strings.Contains(body, `"authentication_error"`) {
		t.Errorf("without a key: %d %s", resp.StatusCode, body)
	}
}

// An error behind the first chunk is the last event; no [DONE] says that all is well.
func TestCompletionFailsLate(t *testing.T) {
	srv := newServer(t, &fakeAsker{late: true, err: &answer.Error{Code: answer.Timeout, Message: "slow"}})
	_, body := post(t, srv.URL+completionsPath, `{"model":"small","messages":[{"role":"user","content":"q"}],"stream":true}`)
	list, done := chunks(t, body)
	if last := list[len(list)-1]; done || !strings.Contains(last, `"error"`) || !strings.Contains(last, `"timeout"`) {
		t.Errorf("%s", body)
	}
}

// An error names the field that was sent, not where POST /ask has it.
func TestErrorsNameTheFieldSent(t *testing.T) {
	for field, want := range map[string]string{"sampling.stop[0]": "stop[0]", "sampling.top_p": "top_p", "messages": "messages"} {
		e := openAIBodyOf(&answer.Error{Code: answer.Invalid, Field: field, Message: field + ": is wrong"}, "").Error
		if *e.Param != want || e.Message != want+": is wrong" {
			t.Errorf("%s: %s, %q", field, *e.Param, e.Message)
		}
	}
}

func TestModels(t *testing.T) {
	srv := newServer(t, &fakeAsker{})
	for path, want := range map[string]string{
		"/v1/models": `"id":"ragd"`, "/v1/models/small": `"role":"answers"`, "/v1/models/ragd": RoleRetrieval,
		"/v1/models/none": `"model_not_found"`, "/v1/models/ragd/none": `"model_not_found"`,
	} {
		resp, err := http.Get(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		_ = resp.Write(&b)
		resp.Body.Close()
		if !strings.Contains(b.String(), want) || !strings.Contains(b.String(), `"created":`) && resp.StatusCode == 200 {
			t.Errorf("%s: %s", path, b.String())
		}
	}
}

func TestEmbeddings(t *testing.T) {
	asker := &fakeAsker{}
	srv := newServer(t, asker)
	resp, body := post(t, srv.URL+"/v1/embeddings", `{"model":"e5","input":["a","가"],"input_type":"query","dimensions":2}`)
	if resp.StatusCode != 200 || !strings.Contains(body, `"embedding":[1,-0.5]`) || !strings.Contains(body, `"prompt_tokens":5`) || !asker.embed.Query || len(asker.embed.Texts) != 2 {
		t.Errorf("%d %s, asked %+v", resp.StatusCode, body, asker.embed)
	}
	_, body = post(t, srv.URL+"/v1/embeddings", `{"model":"e5","input":"a","encoding_format":"base64"}`)
	raw := base64.StdEncoding.EncodeToString([]byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0xbf})
	if !strings.Contains(body, `"`+raw+`"`) || asker.embed.Query {
		t.Errorf("base64: %s", body)
	}
	for body, param := range map[string]string{
		`{"model":"e5","input":[1,2]}`: "input", `{"model":"e5","input":[[1]]}`: "input", `{"model":"e5","input":"a","dimensions":3}`: "dimensions",
		`{"model":"e5","input":"a","encoding_format":"hex"}`: "encoding_format", `{"model":"e5","input":"a","input_type":"document"}`: "input_type", `{"model":"small","input":"a"}`: "model",
	} {
		resp, got := post(t, srv.URL+"/v1/embeddings", body)
		if resp.StatusCode < 400 || resp.StatusCode > 404 || !strings.Contains(got, `"param":"`+param+`"`) {
			t.Errorf("%s: %d %s", body, resp.StatusCode, got)
		}
	}
}

func TestRerank(t *testing.T) {
	asker := &fakeAsker{}
	srv := newServer(t, asker)
	resp, body := post(t, srv.URL+"/v1/rerank", `{"query":"q","documents":["a",{"text":"b"}],"return_documents":true,"top_n":2}`)
	if want := `"results":[{"index":1,"relevance_score":1,"document":{"text":"b"}},{"index":0,"relevance_score":0,"document":{"text":"a"}}]`; resp.StatusCode != 200 || !strings.Contains(body, want) || *asker.rerank.TopN != 2 {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
	_, body = post(t, srv.URL+"/v1/rerank", `{"model":"scorer","query":"q","documents":["a"]}`)
	if strings.Contains(body, `"document"`) {
		t.Errorf("documents unasked: %s", body)
	}
	for body, want := range map[string]int{`{"model":"e5","query":"q","documents":["a"]}`: 404, `{"query":"q","documents":[{"title":"a"}]}`: 400, `{"query":"q","documents":"a"}`: 400} {
		if resp, got := post(t, srv.URL+"/v1/rerank", body); resp.StatusCode != want || !strings.Contains(got, `"code"`) {
			t.Errorf("%s: %d %s", body, resp.StatusCode, got)
		}
	}
}
