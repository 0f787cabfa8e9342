package telemetry

// Names follow the OpenTelemetry GenAI semantic conventions as of v1.41.0 of the
// semantic conventions, the last revision with them in that repository (status:
// development). What they do not name is "ragd.*".
const (
	// Span attributes of the conventions.
	attrOperation     = "gen_ai.operation.name"
	attrProvider      = "gen_ai.provider.name"
	attrRequestModel  = "gen_ai.request.model"
	attrResponseModel = "gen_ai.response.model"
	attrResponseID    = "gen_ai.response.id"
	attrFinishReasons = "gen_ai.response.finish_reasons"
	attrInputTokens   = "gen_ai.usage.input_tokens"
	attrOutputTokens  = "gen_ai.usage.output_tokens"
	attrCachedTokens  = "gen_ai.usage.cache_read.input_tokens"
	attrDataSource    = "gen_ai.data_source.id"
	attrTokenType     = "gen_ai.token.type"
	attrErrorType     = "error.type"
	attrServerAddress = "server.address"
	attrServerPort    = "server.port"

	// Span attributes of ragd.
	attrOutcome         = "ragd.outcome"
	attrStage           = "ragd.stage"
	attrAnswerKind      = "ragd.answer_kind"
	attrRefused         = "ragd.refused"
	attrRetrievedChunks = "ragd.retrieved_chunks"
	attrUsedChunks      = "ragd.used_chunks"
	attrRetrievalMS     = "ragd.retrieval_ms"
	attrRerankMS        = "ragd.rerank_ms"
	attrTTFTMS          = "ragd.ttft_ms"
	attrLLMTTFTMS       = "ragd.llm_ttft_ms"
	attrTotalMS         = "ragd.total_ms"
	attrPreemptions     = "ragd.preemptions"
	attrPreemptedMS     = "ragd.preempted_ms"

	attrCostInput    = "ragd.cost.input"
	attrCostCached   = "ragd.cost.cached_input"
	attrCostOutput   = "ragd.cost.output"
	attrCostTotal    = "ragd.cost.total"
	attrCostCurrency = "ragd.cost.currency"

	// Opt-in content.
	attrQuestion = "ragd.content.question"
	attrAnswer   = "ragd.content.answer"

	// Metrics of the conventions, all in seconds.
	metricServerDuration = "gen_ai.server.request.duration"
	metricServerTTFT     = "gen_ai.server.time_to_first_token"
	metricServerTPOT     = "gen_ai.server.time_per_output_token"

	// Metric of the conventions, in tokens.
	metricTokenUsage = "gen_ai.client.token.usage"

	// Metrics of ragd.
	metricRequestDuration = "ragd.request.duration"
	metricTTFT            = "ragd.ttft"
	metricStageDuration   = "ragd.stage.duration"
	metricInputTokens     = "ragd.tokens.input"
	metricOutputTokens    = "ragd.tokens.output"
	metricCachedTokens    = "ragd.tokens.cached"
	metricRetrieved       = "ragd.chunks.retrieved"
	metricUsed            = "ragd.chunks.used"
	metricQueueDepth      = "ragd.queue.depth"
	metricRunning         = "ragd.requests.running"
	metricBlocksUsed      = "ragd.kv.blocks.used"
	metricBlocksFree      = "ragd.kv.blocks.free"
	metricPrefixHits      = "ragd.prefix.hit_tokens"
	metricPreemptions     = "ragd.preemptions"
	metricRecomputed      = "ragd.tokens.recomputed"
	metricDroppedTokens   = "ragd.tokens.dropped"
	metricDroppedChunks   = "ragd.chunks.dropped"
	metricActive          = "ragd.requests.active"
	metricPrefillRate     = "ragd.prefill.rate"
	metricDecodeStep      = "ragd.decode.step"
	metricBandwidth       = "ragd.model.bandwidth"
	metricIngestDocuments = "ragd.ingest.documents"
	metricIngestBytes     = "ragd.ingest.bytes"
	metricIngestChunks    = "ragd.ingest.chunks"
	metricIngestTokens    = "ragd.ingest.tokens"
	metricIngestDuration  = "ragd.ingest.duration"
	metricIngestPending   = "ragd.ingest.pending"
	metricIngestLag       = "ragd.ingest.lag"
	metricSpansExported   = "ragd.spans.exported"
	metricSpansDropped    = "ragd.spans.dropped"
	metricCost            = "ragd.cost"

	// Values of attrOperation. Reranking has none in the conventions.
	operationChat = "chat"
	// OperationEmbeddings is for Summary.Operation.
	OperationEmbeddings = "embeddings"
	// OperationRerank is for Summary.Operation.
	OperationRerank = "rerank"

	// Values of attrProvider: ragd's own engine, and any server that is asked in the form
	// of OpenAI, of which no more is known.
	provider       = "ragd"
	providerOpenAI = "openai"

	scope = "ragd"
)
