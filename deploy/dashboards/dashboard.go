package main

import "github.com/grafana/grafana-foundation-sdk/go/dashboard"

const answered = `{outcome="answered"}`

// ragd is the dashboard of one or more ragd processes.
func ragd() *dashboard.DashboardBuilder {
	d := dashboard.NewDashboardBuilder("ragd").
		Uid("ragd").Title("ragd").Tags([]string{"ragd", "rag"}).
		Description("Where the milliseconds and the tokens went. Definitions: docs/TELEMETRY.md.").
		Time("now-1h", "now").Refresh("30s").Timezone("browser").Readonly().
		Tooltip(dashboard.DashboardCursorSyncCrosshair)
	for _, section := range []func(*dashboard.DashboardBuilder){latency, attribution, load, tokens, engine, documents, plumbing} {
		section(d)
	}
	return d
}

func latency(d *dashboard.DashboardBuilder) {
	d.WithRow(dashboard.NewRowBuilder("Latency"))
	d.WithPanel(lines("Time to first token", "Receipt of the request to the first token written. Points are exemplars: they open the trace.", "s", percentiles("ragd_ttft_seconds", answered)...))
	d.WithPanel(lines("Total", "Receipt to last byte.", "s", percentiles("ragd_request_duration_seconds", answered)...))
	d.WithPanel(lines("Time per output token", "Decode time over the tokens after the first, by request.", "s", percentiles("gen_ai_server_time_per_output_token_seconds", "")...))
	d.WithPanel(heat("Time to first token, all requests", "One column a step; colour is how many requests.", "ragd_ttft_seconds"))
}

func attribution(d *dashboard.DashboardBuilder) {
	const stages = "sum by (stage) (rate(ragd_stage_duration_seconds_sum[$__rate_interval]))"
	d.WithRow(dashboard.NewRowBuilder("Attribution"))
	d.WithPanel(byStage(stacked("Mean time by stage", "Seconds of each stage a request. Means add up to the mean total; percentiles would not.", "s",
		query{expr: stages + " / scalar(sum(rate(ragd_request_duration_seconds_count[$__rate_interval])))", legend: "{{stage}}"})))
	d.WithPanel(byStage(stacked("Share by stage", "The part of all request time that each stage takes.", "percentunit",
		query{expr: stages + " / scalar(sum(rate(ragd_request_duration_seconds_sum[$__rate_interval])))", legend: "{{stage}}"}).Max(1)))
	d.WithPanel(lines("Queue", "Submission to the engine until it is scheduled.", "s", percentiles("ragd_stage_duration_seconds", `{stage="queue"}`)...))
	d.WithPanel(lines("Engine's first token", "Submission to the first token sampled: queue and prefill.", "s", percentiles("gen_ai_server_time_to_first_token_seconds", "")...))
	d.WithPanel(byStage(lines("Slowest of 20 by stage", "p95 of each stage: which one is slow at times. They do not add up to the p95 of the total.", "s",
		query{expr: "histogram_quantile(0.95, sum by (le, stage) (rate(ragd_stage_duration_seconds_bucket[$__rate_interval])))", legend: "{{stage}}"})))
	d.WithPanel(lines("Generation", "Submission to the engine to the last token.", "s", percentiles("gen_ai_server_request_duration_seconds", "")...))
}

func load(d *dashboard.DashboardBuilder) {
	d.WithRow(dashboard.NewRowBuilder("Load"))
	d.WithPanel(stacked("Requests", "Finished requests a second by outcome.", "reqps",
		query{expr: "sum by (outcome) (rate(ragd_request_duration_seconds_count[$__rate_interval]))", legend: "{{outcome}}"}))
	d.WithPanel(lines("In flight", "Requests between receipt and last byte, in the engine, and waiting for it.", "short",
		query{expr: "sum(ragd_requests_active)", legend: "active"},
		query{expr: "sum(ragd_requests_running)", legend: "in the engine"},
		query{expr: "sum(ragd_queue_depth)", legend: "queued"}))
	d.WithPanel(stacked("HTTP", "Requests a second by route and status, of every route.", "reqps",
		query{expr: "sum by (http_route, http_response_status_code) (rate(http_server_request_duration_seconds_count[$__rate_interval]))", legend: "{{http_route}} {{http_response_status_code}}"}))
	d.WithPanel(lines("HTTP, slowest of 20", "p95 from the first byte read to the last written, by route.", "s",
		query{expr: "histogram_quantile(0.95, sum by (le, http_route) (rate(http_server_request_duration_seconds_bucket[$__rate_interval])))", legend: "{{http_route}}"}))
	d.WithPanel(lines("Failures", "Part of the requests that the server failed at.", "percentunit",
		query{expr: "ragd:error_ratio:5m", legend: "5 minutes"}, query{expr: "ragd:error_ratio:1h", legend: "1 hour"}))
	d.WithPanel(lines("Turned away", "Part of the HTTP requests that were answered 429: the queue was full, or a key was over its limits. They count as no failure.", "percentunit",
		query{expr: "ragd:turned_away_ratio:5m", legend: "5 minutes"}))
}

func tokens(d *dashboard.DashboardBuilder) {
	d.WithRow(dashboard.NewRowBuilder("Tokens"))
	d.WithPanel(lines("Tokens a second", "Prompt tokens given to the engine, of them from the prefix cache, and tokens written.", "short",
		query{expr: "sum(rate(ragd_tokens_input_sum[$__rate_interval]))", legend: "input"},
		query{expr: "sum(rate(ragd_tokens_cached_sum[$__rate_interval]))", legend: "cached"},
		query{expr: "sum(rate(ragd_tokens_output_sum[$__rate_interval]))", legend: "output"}))
	d.WithPanel(stacked("What models read and wrote", "Tokens a second by what they were for: answers, and embeddings and reranking that callers asked for.", "short",
		query{expr: "sum by (gen_ai_operation_name, gen_ai_token_type) (rate(gen_ai_client_token_usage_sum[$__rate_interval]))", legend: "{{gen_ai_operation_name}} {{gen_ai_token_type}}"}))
	d.WithPanel(lines("Prompt length", "Input tokens of a request.", "short", percentiles("ragd_tokens_input", "")...))
	d.WithPanel(lines("Answer length", "Output tokens of a request.", "short", percentiles("ragd_tokens_output", "")...))
	d.WithPanel(stacked("Tokens left out", "Tokens of retrieved chunks that were not presented, by reason.", "short",
		query{expr: "sum by (reason) (rate(ragd_tokens_dropped_total[$__rate_interval]))", legend: "{{reason}}"}))
	d.WithPanel(lines("Chunks a request", "Retrieved, presented, and left out.", "short",
		query{expr: "sum(rate(ragd_chunks_retrieved_sum[$__rate_interval])) / sum(rate(ragd_chunks_retrieved_count[$__rate_interval]))", legend: "retrieved"},
		query{expr: "sum(rate(ragd_chunks_used_sum[$__rate_interval])) / sum(rate(ragd_chunks_used_count[$__rate_interval]))", legend: "presented"},
		query{expr: "sum(rate(ragd_chunks_dropped_total[$__rate_interval])) / sum(rate(ragd_chunks_used_count[$__rate_interval]))", legend: "left out"}))
	d.WithPanel(stacked("Cost an hour", "What the requests of an hour cost at this pace, input apart from output, in units of the currency. Empty where nothing has a price.", "short",
		query{expr: "sum by (part, currency) (rate(ragd_cost_total[$__rate_interval])) * 3600", legend: "{{part}} {{currency}}"}))
	d.WithPanel(lines("Cost of a request", "Mean of the requests that the engine answered.", "short",
		query{expr: "sum by (currency) (rate(ragd_cost_total[$__rate_interval])) / scalar(sum(rate(ragd_tokens_input_count[$__rate_interval])))", legend: "{{currency}}"}))
}

func engine(d *dashboard.DashboardBuilder) {
	d.WithRow(dashboard.NewRowBuilder("Engine"))
	d.WithPanel(lines("Prefill rate", "Prompt tokens a second, as the engine measures it.", "short",
		query{expr: "ragd_prefill_rate_per_second", legend: "{{instance}}"}))
	d.WithPanel(lines("Weights read while decoding", "Size of the weights over the time of a decoding step: near the machine's memory bandwidth when decoding is bound by it.", "Bps",
		query{expr: "ragd_model_bandwidth_bytes_per_second", legend: "{{instance}}"}))
	d.WithPanel(lines("Decoding step", "Time of a step that only decodes.", "s",
		query{expr: "ragd_decode_step_seconds", legend: "{{instance}}"}))
	d.WithPanel(lines("KV cache", "Part of the blocks that answers hold. Those of prefixes that nobody uses at the moment count as free.", "percentunit",
		query{expr: "ragd_kv_blocks_used / (ragd_kv_blocks_used + ragd_kv_blocks_free)", legend: "{{instance}}"}).Max(1))
	d.WithPanel(lines("Prefix cache", "Part of the prompt tokens that the cache had.", "percentunit",
		query{expr: "sum(rate(ragd_prefix_hit_tokens_total[$__rate_interval])) / sum(rate(ragd_tokens_input_sum[$__rate_interval]))", legend: "hits"}).Max(1))
	d.WithPanel(lines("Pauses", "Answers that paused a minute because others needed their cache blocks. Many mean that inference.kv_cache_tokens is too small for what runs at once.", "short",
		query{expr: "rate(ragd_preemptions_total[$__rate_interval]) * 60", legend: "{{instance}}"}))
	d.WithPanel(lines("Tokens read again", "Tokens a second that the engine ran once more for answers that had paused: work that a larger cache would save.", "short",
		query{expr: "rate(ragd_tokens_recomputed_total[$__rate_interval])", legend: "{{instance}}"}))
}

func documents(d *dashboard.DashboardBuilder) {
	d.WithRow(dashboard.NewRowBuilder("Documents"))
	d.WithPanel(lines("Ingest rate", "Chunks stored and tokens embedded a second.", "short",
		query{expr: "sum(rate(ragd_ingest_chunks_total[$__rate_interval]))", legend: "chunks"},
		query{expr: "sum(rate(ragd_ingest_tokens_total[$__rate_interval]))", legend: "tokens"}))
	d.WithPanel(lines("Ingest bytes", "Bytes of settled documents a second.", "Bps",
		query{expr: "sum(rate(ragd_ingest_bytes_total[$__rate_interval]))", legend: "bytes"}))
	d.WithPanel(lines("Ingest lag", "How long the oldest run has had documents to settle.", "s",
		query{expr: "max(ragd_ingest_lag_seconds)", legend: "lag"}))
	d.WithPanel(lines("Length of a run", "p95 of the ingest runs that ended in the last hour.", "s",
		query{expr: "histogram_quantile(0.95, sum by (le) (increase(ragd_ingest_duration_seconds_bucket[1h])))", legend: "p95"}))
	d.WithPanel(stacked("Documents", "Settled documents by how they ended, and those still pending.", "short",
		query{expr: "sum by (status) (increase(ragd_ingest_documents_total[$__rate_interval]))", legend: "{{status}}"},
		query{expr: "sum(ragd_ingest_pending)", legend: "pending"}))
}

func plumbing(d *dashboard.DashboardBuilder) {
	d.WithRow(dashboard.NewRowBuilder("Database, traces, process"))
	d.WithPanel(stacked("Database calls", "Calls a second by operation; the beginnings and ends of transactions that only read are not measured.", "ops",
		query{expr: "sum by (db_operation_name) (rate(db_client_operation_duration_seconds_count[$__rate_interval]))", legend: "{{db_operation_name}}"}))
	d.WithPanel(lines("Database calls, slowest of 20", "p95 by operation.", "s",
		query{expr: "histogram_quantile(0.95, sum by (le, db_operation_name) (rate(db_client_operation_duration_seconds_bucket[$__rate_interval])))", legend: "{{db_operation_name}}"}))
	d.WithPanel(lines("Database calls that failed", "Calls a second that ended in an error, those of callers who left among them.", "ops",
		query{expr: `sum(rate(db_client_operation_duration_seconds_count{error_type!=""}[$__rate_interval])) or vector(0)`, legend: "failed"}))
	d.WithPanel(lines("Wait for a connection", "Mean over all acquires.", "s",
		query{expr: "rate(pgxpool_empty_acquire_wait_time_nanoseconds_total[$__rate_interval]) / 1e9 / rate(pgxpool_acquires_total[$__rate_interval])", legend: "{{instance}}"}))
	d.WithPanel(lines("Connections", "Of the pool.", "short",
		query{expr: "sum(pgxpool_acquired_connections)", legend: "in use"},
		query{expr: "sum(pgxpool_idle_connections)", legend: "idle"},
		query{expr: "sum(pgxpool_max_connections)", legend: "at most"}))
	d.WithPanel(lines("Spans", "Exported and lost a second.", "short",
		query{expr: "sum(rate(ragd_spans_exported_total[$__rate_interval]))", legend: "exported"},
		query{expr: "sum by (reason) (rate(ragd_spans_dropped_total[$__rate_interval]))", legend: "lost: {{reason}}"}))
	d.WithPanel(lines("Processor", "Cores in use by ragd, the engine's threads among them; those of the database are not.", "short",
		query{expr: "rate(process_cpu_seconds_total[$__rate_interval])", legend: "{{instance}}"}))
	d.WithPanel(lines("Memory", "Resident memory of ragd: where the CPU computes, weights and KV cache above all.", "bytes",
		query{expr: "process_resident_memory_bytes", legend: "{{instance}}"}))
}
