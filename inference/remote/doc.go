// Package remote answers requests on an OpenAI-compatible server (vLLM, the
// llama.cpp server) with the contract of package engine: the same Request goes
// in, the same events come out.
//
// The prompt is sent to /completions as token ids, never as text: what was
// rendered and counted here is what the server runs, and no text of a document
// can become a control token on the way. The tokenizer must be that of the
// served model; an answer whose prompt the server counted differently fails.
//
// The server's queue cannot be seen: all the time to the first token counts as
// prefill. Deltas carry text and no ids.
package remote
