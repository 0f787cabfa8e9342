package answer

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/unicode/norm"

	"ragd/retrieve"
	"ragd/telemetry"
)

func ask(t testing.TB, r *rig, req Request) (*Result, *recordingSink) {
	t.Helper()
	sink := &recordingSink{}
	res, err := r.Ask(context.Background(), time.Now(), req, sink)
	if err != nil {
		t.Fatal(err)
	}
	return res, sink
}

var twoChunks = []retrieve.Hit{
	chunk(11, "Harbour", "The crane at dock four lifts fourteen tonnes.", "It was built in 1988."),
	chunk(12, "Garden", "Tomatoes need six hours of sun.", "Water them in the morning."),
}

// A question from a program of macOS may spell its syllables by their letters, which no
// model was made for.
func TestQuestionIsComposed(t *testing.T) {
	const question = "기중기는 몇 톤을 드나요?"
	r := newRig(t, twoChunks, &fakeGenerator{pieces: []string{"14"}})
	res, _ := ask(t, r, Request{Question: norm.NFD.String(question), AnswerMode: ModeGenerate, Explain: true})
	if !slices.ContainsFunc(res.Explain.Prompt, func(p ExplainPart) bool { return p.Component == "question" && p.Text == question }) {
		t.Errorf("the prompt is %+v", res.Explain.Prompt)
	}
}

func TestGeneratedAnswer(t *testing.T) {
	r := newRig(t, twoChunks, &fakeGenerator{pieces: []string{" The crane lifts", " fourteen tonnes [2]."}})
	res, sink := ask(t, r, Request{Question: "How much does the crane lift?", Explain: true})
	if res.Answer != "The crane lifts fourteen tonnes [2]." || res.Answer != sink.text.String() {
		t.Errorf("answer %q, streamed %q", res.Answer, sink.text.String())
	}
	want := []string{"queued 1", "sources 2", "delta", "delta", "citation 2"}
	if !slices.Equal(sink.events, want) {
		t.Errorf("events %v, want %v", sink.events, want)
	}
	if len(res.Citations) != 1 || res.Citations[0].ChunkID != 11 {
		t.Fatalf("citations %+v", res.Citations)
	}
	q := res.Citations[0].Quote
	if got := string([]rune(res.Answer)[q.Start:q.End]); got != "The crane lifts fourteen tonnes" {
		t.Errorf("quote %q", got)
	}
	if len(res.Sources.Cited) != 1 || res.Sources.Cited[0].Document != "Harbour.md" {
		t.Errorf("cited %+v", res.Sources.Cited)
	}
	if res.Usage.InputTokens != len(r.gen.got.Tokens) || res.Usage.InputTokens != res.Usage.Ledger.Input() {
		t.Errorf("ledger says %d tokens, the engine was given %d", res.Usage.InputTokens, len(r.gen.got.Tokens))
	}
	var text strings.Builder
	for _, p := range res.Explain.Prompt {
		text.WriteString(p.Text)
	}
	if !strings.Contains(text.String(), "How much does the crane lift?") || !strings.HasSuffix(text.String(), "assistant\n") {
		t.Errorf("explained prompt %q", text.String())
	}
}

func TestSmallModelQuotesFirst(t *testing.T) {
	gen := &fakeGenerator{info: ModelInfo{Name: "tiny", Window: 4096, Small: true, Languages: []string{"en"}}, pieces: []string{"Fourteen."}}
	r := newRig(t, twoChunks, gen)
	res, sink := ask(t, r, Request{Question: "How much does the crane lift?"})
	if res.Kind != KindBoth || !strings.HasPrefix(res.Answer, "The crane at dock four lifts fourteen tonnes. [1]") || !strings.HasSuffix(res.Answer, "\n\nFourteen.") {
		t.Errorf("%s: %q", res.Kind, res.Answer)
	}
	for _, c := range res.Citations {
		quote := string([]rune(res.Answer)[c.Quote.Start:c.Quote.End])
		source := twoChunks[c.ChunkID-11].Chunk.Text
		if !strings.Contains(source, quote) {
			t.Errorf("%q is not in chunk %d word for word", quote, c.ChunkID)
		}
	}
	if sink.events[0] != "queued 1" || sink.events[1] != "sources 1" {
		t.Errorf("events %v", sink.events)
	}
}

func TestLanguageTheModelDoesNotSpeak(t *testing.T) {
	gen := &fakeGenerator{info: ModelInfo{Name: "tiny", Window: 4096, Languages: []string{"en"}}}
	r := newRig(t, []retrieve.Hit{chunk(1, "항구", "기중기는 14톤을 든다.", "1988년에 만들었다.")}, gen)
	res, _ := ask(t, r, Request{Question: "기중기는 몇 톤을 드나요?"})
	if res.Kind != KindExtracted || res.Answer != "기중기는 14톤을 든다. [1]" || gen.got.Tokens != nil {
		t.Errorf("%s: %q, tokens %v", res.Kind, res.Answer, gen.got.Tokens)
	}
	if q := res.Citations[0].Quote; string([]rune(res.Answer)[q.Start:q.End]) != "기중기는 14톤을 든다." {
		t.Errorf("quote %+v", q)
	}
	if res.Usage.InputTokens != 0 || res.Usage.Ledger.Input() != 0 || res.UsedChunks != 1 {
		t.Errorf("usage %+v", res.Usage)
	}
}

func TestRefusalWithoutEvidence(t *testing.T) {
	far := chunk(1, "Far", "Nothing of the kind.")
	far.Scores.Dense, far.SentenceVectors = 0.3, nil
	for name, hits := range map[string][]retrieve.Hit{"no hits": nil, "below the threshold": {far}} {
		t.Run(name, func(t *testing.T) {
			gen := &fakeGenerator{pieces: []string{"made up"}}
			r := newRig(t, hits, gen)
			res, sink := ask(t, r, Request{Question: "What is the king's name?"})
			if !res.Refused || gen.got.Tokens != nil || len(res.Usage.Ledger.Dropped) != len(hits) || res.Answer != sink.text.String() {
				t.Errorf("%+v", res)
			}
			ko, _ := ask(t, r, Request{Question: "왕의 이름은?"})
			if !strings.Contains(ko.Answer, "문서") {
				t.Errorf("a Korean question was refused with %q", ko.Answer)
			}
			if !strings.Contains(r.log.String(), `"outcome":"refused"`) {
				t.Errorf("log %s", r.log)
			}
		})
	}
}

func TestUnsureModelIsBackedByQuotes(t *testing.T) {
	r := newRig(t, twoChunks, &fakeGenerator{pieces: []string{"Perhaps."}})
	r.cfg.MinConfidence = 1 // every answer lies below it
	res, _ := ask(t, r, Request{Question: "How much does the crane lift?"})
	if res.Kind != KindBoth || !strings.HasPrefix(res.Answer, "Perhaps.\n\nThe crane") {
		t.Errorf("%s: %q", res.Kind, res.Answer)
	}
	forced, _ := ask(t, r, Request{Question: "How much does the crane lift?", AnswerMode: ModeGenerate})
	if forced.Kind != KindGenerated {
		t.Errorf("generate gave %s", forced.Kind)
	}
}

func TestOnlyEvidenceTooLongIsCutAtASentence(t *testing.T) {
	long := chunk(5, "Long", "One short sentence.", strings.Repeat("A very long sentence goes on and on and on ", 20)+".")
	r := newRig(t, []retrieve.Hit{long}, &fakeGenerator{pieces: []string{"ok"}})
	tokens := 20
	res, _ := ask(t, r, Request{Question: "What?", Budget: &Budget{ContextTokens: &tokens, Detail: DetailChunks}})
	if len(res.Sources.Presented) != 1 || !res.Sources.Presented[0].Truncated || res.Sources.Presented[0].Text != "One short sentence." {
		t.Fatalf("presented %+v", res.Sources.Presented)
	}
	if got := res.Usage.Ledger.Evidence[0].Tokens; got > tokens {
		t.Errorf("evidence takes %d tokens, %d were allowed", got, tokens)
	}
}

func TestErrorsHaveCodes(t *testing.T) {
	broken := errors.New("SQLSTATE something")
	for name, c := range map[string]struct {
		change func(*rig, *Request)
		code   Code
		field  string
	}{
		"database gone": {func(r *rig, _ *Request) { r.Retriever = fakeRetriever{err: retrieve.ErrUnavailable} }, Unavailable, ""},
		"no collection": {func(r *rig, _ *Request) {
			r.Retriever = fakeRetriever{err: &retrieve.NoCollectionError{Name: "default"}}
		}, NotFound, "collection"},
		"internal":          {func(r *rig, _ *Request) { r.Embedder = fakeEmbedder{err: broken} }, Internal, ""},
		"busy":              {func(r *rig, _ *Request) { r.gen.err = &Error{Code: Busy, Message: "queue is full"} }, Busy, ""},
		"question too long": {func(_ *rig, q *Request) { q.Question = strings.Repeat("long ", 4000) }, OverBudget, ""},
		"answer > window":   {func(_ *rig, q *Request) { n := 5000; q.Budget = &Budget{AnswerTokens: &n} }, Invalid, "budget.answer_tokens"},
		"context > window":  {func(_ *rig, q *Request) { n := 5000; q.Budget = &Budget{ContextTokens: &n} }, Invalid, "budget.context_tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, twoChunks, &fakeGenerator{pieces: []string{"x"}})
			req := Request{Question: "Well?"}
			c.change(r, &req)
			res, err := r.Ask(context.Background(), time.Now(), req, &recordingSink{})
			var e *Error
			if !errors.As(err, &e) || e.Code != c.code || e.Field != c.field {
				t.Fatalf("got %v", err)
			}
			if c.code == Internal && strings.Contains(e.Message, "SQLSTATE") {
				t.Errorf("the message shows internals: %s", e.Message)
			}
			checkSum(t, res)
		})
	}
}

// checkSum holds the latency ledger: stages and other are the total.
func checkSum(t testing.TB, res *Result) {
	t.Helper()
	sum := time.Duration(0)
	for _, row := range res.Timings.Rows() {
		if row.Duration < 0 {
			t.Errorf("%s took %v", row.Name, row.Duration)
		}
		sum += row.Duration
	}
	if d := sum - res.Timings.Total; d > time.Millisecond || d < -time.Millisecond {
		t.Errorf("stages sum to %v, the total is %v", sum, res.Timings.Total)
	}
	if res.Timings.TTFT > res.Timings.Total {
		t.Errorf("first token after %v, total %v", res.Timings.TTFT, res.Timings.Total)
	}
}

func TestTimingsAddUp(t *testing.T) {
	r := newRig(t, twoChunks, &fakeGenerator{pieces: []string{"a", "b", "c"}})
	res, _ := ask(t, r, Request{Question: "Well?"})
	checkSum(t, res)
	for _, s := range []telemetry.Stage{telemetry.StageQueue, telemetry.StagePrefill, telemetry.StageDecode} {
		if res.Timings.Stage(s) <= 0 {
			t.Errorf("%s took %v", s, res.Timings.Stage(s))
		}
	}
	data, err := json.Marshal(res)
	if err != nil {
		t.Fatal(err)
	}
	var back Result
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	checkSum(t, &back)
}

func TestCancelKeepsTheFigures(t *testing.T) {
	r := newRig(t, twoChunks, &fakeGenerator{pieces: []string{"half an "}, block: true})
	ctx, cancel := context.WithCancel(context.Background())
	time.AfterFunc(20*time.Millisecond, cancel)
	res, err := r.Ask(ctx, time.Now(), Request{Question: "Well?"}, &recordingSink{})
	if AsError(err).Code != Cancelled || res.FinishReason != "cancelled" || res.Usage.OutputTokens != 1 {
		t.Errorf("%v: %+v", err, res)
	}
	checkSum(t, res)
	if !strings.Contains(r.log.String(), `"outcome":"cancelled"`) {
		t.Errorf("log %s", r.log)
	}
	for _, s := range r.spans.GetSpans() {
		if s.EndTime.IsZero() {
			t.Errorf("span %s did not end", s.Name)
		}
	}
}

func TestSpanTree(t *testing.T) {
	r := newRig(t, twoChunks, &fakeGenerator{pieces: []string{"a", "b"}})
	res, _ := ask(t, r, Request{Question: "Well?"})
	parents, names := map[string]string{}, map[string]string{}
	for _, s := range r.spans.GetSpans() {
		names[s.SpanContext.SpanID().String()] = s.Name
		if s.SpanContext.TraceID().String() != res.TraceID {
			t.Errorf("span %s is in another trace", s.Name)
		}
	}
	for _, s := range r.spans.GetSpans() {
		parents[s.Name] = names[s.Parent.SpanID().String()]
	}
	for span, parent := range map[string]string{
		"POST /ask": "", "retrieval default": "POST /ask", "embeddings fake-embedder": "retrieval default",
		"dense": "retrieval default", "lexical": "retrieval default", "fuse": "retrieval default",
		"rerank best-sentence": "POST /ask", "pack": "POST /ask", "chat fake": "POST /ask",
		"render": "chat fake", "queue": "chat fake", "prefill": "chat fake", "decode": "chat fake",
	} {
		if got, ok := parents[span]; !ok || got != parent {
			t.Errorf("span %q has parent %q (there: %v), want %q", span, got, ok, parent)
		}
	}
}
