// Package engine runs answers: requests go in, streams of events come out.
//
// One goroutine owns the decoder, the block pool and the running sequences. It
// goes round one loop:
//
//	sweep    those whose caller is gone, leave and give their blocks back
//	admit    those who wait, start as far as places and blocks go
//	compose  decode tokens and pieces of prompts make one ragged batch
//	forward  the decoder runs it
//	advance  each sequence that got logits draws tokens and streams them
//
// A sequence goes one way through these states:
//
//	waiting ──► running (prefill ──► decode) ──► Done or Failed
//	   └────────────┴── cancelled ──────────────► Done
//
// Invariants. A running sequence holds all blocks it can ever need. An ended
// one holds none. The loop never waits for a reader: a Stream joins the text of
// tokens not yet read into one Delta, so its size is bounded by the answer. A
// cancel takes effect before the next step, also between the pieces of a long
// prompt. What a sequence draws depends on its own tokens, seed and logits
// only, never on the rest of the batch. Prompt lookup drafts tokens and checks
// several in one step; it changes when tokens are drawn, not which.
//
// The engine counts tokens as the decoder sees them: Usage.InputTokens is what
// the request brought, Usage.OutputTokens is what was drawn, with the token that
// ended the answer.
package engine
