package telemetry

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestNothingIsRecordedOfWhatWasNot: metrics and root span have the tokens and chunks of
// what a request did, and no zeros for what it did not.
func TestNothingIsRecordedOfWhatWasNot(t *testing.T) {
	usage := func(operation, kind, model string) string {
		return `gen_ai_client_token_usage_count{gen_ai_operation_name="` + operation + `",gen_ai_provider_name="ragd",gen_ai_request_model="` + model + `",gen_ai_token_type="` + kind + `"} 1`
	}
	all := []string{"gen_ai_client_token_usage", "ragd_chunks_retrieved", "ragd_chunks_used", "ragd_tokens_input", "ragd_tokens_output", "ragd_ttft", "gen_ai_server"}
	attrs := []string{attrInputTokens, attrOutputTokens, attrCachedTokens, attrRetrievedChunks, attrUsedChunks, attrTTFTMS, attrLLMTTFTMS, attrRetrievalMS, attrRerankMS, attrFinishReasons, attrAnswerKind}
	for name, c := range map[string]struct {
		run   func(*Telemetry)
		lines []string // samples that are there
		there []string // of all, the names that are there
		root  []string // of attrs
	}{
		"a question": {
			oneQuestion,
			[]string{usage("chat", "input", "model"), usage("chat", "output", "model"), "ragd_chunks_retrieved_sum 20", "ragd_chunks_used_sum 6"},
			all, attrs,
		},
		"embeddings": {
			func(tel *Telemetry) {
				one(tel, StageEmbed, Summary{Operation: OperationEmbeddings, Model: "e", Outcome: Answered, InputTokens: 12})
			},
			[]string{usage("embeddings", "input", "e"), `gen_ai_client_token_usage_sum{gen_ai_operation_name="embeddings",gen_ai_provider_name="ragd",gen_ai_request_model="e",gen_ai_token_type="input"} 12`},
			all[:1],
			[]string{attrInputTokens},
		},
		"rerank": {
			func(tel *Telemetry) {
				one(tel, StageRerank, Summary{Operation: OperationRerank, Model: "r", Outcome: Answered, InputTokens: 9})
			},
			[]string{usage("rerank", "input", "r")},
			all[:1],
			[]string{attrInputTokens, attrRerankMS},
		},
		"embeddings that failed": {
			func(tel *Telemetry) {
				one(tel, StageEmbed, Summary{Operation: OperationEmbeddings, Model: "e", Outcome: Failed})
			}, nil, nil, nil,
		},
		"a search": {
			func(tel *Telemetry) {
				one(tel, StageRetrieval, Summary{Outcome: Answered, RetrievedChunks: 3})
			},
			[]string{"ragd_chunks_retrieved_sum 3"},
			all[1:2],
			[]string{attrRetrievedChunks, attrRetrievalMS},
		},
		"a search that finds nothing": {
			func(tel *Telemetry) { one(tel, StageRetrieval, Summary{Outcome: Answered}) },
			[]string{"ragd_chunks_retrieved_sum 0", "ragd_chunks_retrieved_count 1"},
			all[1:2],
			[]string{attrRetrievedChunks, attrRetrievalMS},
		},
		"a search that failed": {
			func(tel *Telemetry) { one(tel, StageRetrieval, Summary{Outcome: Failed}) }, nil, nil,
			[]string{attrRetrievalMS},
		},
		"a prompt of which no token came": {
			func(tel *Telemetry) { one(tel, StagePrefill, Summary{Outcome: TimedOut, InputTokens: 50}) }, nil, nil,
			[]string{attrInputTokens},
		},
		"rejected": {
			func(tel *Telemetry) { one(tel, StagePack, Summary{Outcome: Rejected}) }, nil, nil, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, false)
			c.run(r.Telemetry)
			page := samples(t, r.Telemetry)
			wantLines(t, page, c.lines...)
			for _, metric := range all {
				want := slices.Contains(c.there, metric)
				if strings.Contains(page, "\n"+metric) != want {
					t.Errorf("%s is there: %v", metric, !want)
				}
			}
			spans := r.spans.GetSpans()
			root := spans[len(spans)-1]
			has := map[string]bool{}
			for _, a := range root.Attributes {
				has[string(a.Key)] = true
			}
			for _, attr := range attrs {
				if has[attr] != slices.Contains(c.root, attr) {
					t.Errorf("the root has %s: %v", attr, has[attr])
				}
			}
		})
	}
}

// one is a request of one stage.
func one(tel *Telemetry, s Stage, sum Summary) {
	received := time.Now()
	ctx, r := tel.Begin(context.Background(), "POST /x", received)
	_, end := r.Begin(ctx, s, "")
	end(nil)
	r.End(ctx, r.Timings(received.Add(time.Second)), sum)
}

// TestServedLabels: those of the convention; an error's type where the server is at
// fault; methods that nobody knows are one.
func TestServedLabels(t *testing.T) {
	r := newRig(t, false)
	for _, s := range []Served{
		{Method: "POST", Route: "/ask", Protocol: "HTTP/1.1", Status: 200, Took: 30 * time.Millisecond},
		{Method: "POST", Route: "/ask", Protocol: "HTTP/1.1", Status: 200, Took: 30 * time.Second},
		{Method: "POST", Route: "/ask", Protocol: "HTTP/2.0", TLS: true, Status: 503},
		{Method: "BREW", Protocol: "HTTP/1.1", Status: 404},
		{Method: "STIR", Protocol: "HTTP/1.1", Status: 404},
	} {
		r.Served(t.Context(), s)
	}
	wantLines(t, samples(t, r.Telemetry),
		`http_server_request_duration_seconds_count{http_request_method="POST",http_response_status_code="200",http_route="/ask",network_protocol_name="http",network_protocol_version="1.1",server_address="ragd",url_scheme="http"} 2`,
		`http_server_request_duration_seconds_count{error_type="503",http_request_method="POST",http_response_status_code="503",http_route="/ask",network_protocol_name="http",network_protocol_version="2",server_address="ragd",url_scheme="https"} 1`,
		`http_server_request_duration_seconds_count{http_request_method="_OTHER",http_response_status_code="404",network_protocol_name="http",network_protocol_version="1.1",server_address="ragd",url_scheme="http"} 2`,
		`http_server_request_duration_seconds_bucket{http_request_method="POST",http_response_status_code="200",http_route="/ask",network_protocol_name="http",network_protocol_version="1.1",server_address="ragd",url_scheme="http",le="0.05"} 1`,
	)
}

// TestLabelsAreKept once for each series, and no more than the bound.
func TestLabelsAreKept(t *testing.T) {
	var s labelSets
	for i := range 2 * mostLabels {
		s.of(labels{reason: strings.Repeat("r", 1+i)})
		s.of(labels{reason: "r"})
	}
	kept := 0
	s.kept.Range(func(any, any) bool { kept++; return true })
	if kept != mostLabels {
		t.Errorf("%d sets of labels are kept", kept)
	}
}
