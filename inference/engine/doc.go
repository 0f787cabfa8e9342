// Package engine runs answers: requests go in, streams of events come out.
//
// One goroutine owns the decoder, the block pool and the running sequences. It
// goes round one loop:
//
//	sweep    those whose caller is gone, leave and give their blocks back
//	grow     answers take the block of their next token, or one of them pauses
//	admit    those who wait, start as far as places and blocks go
//	compose  decode tokens and pieces of prompts make one ragged batch
//	forward  the decoder runs it
//	advance  each sequence that got logits draws tokens and streams them
//
// A sequence goes one way through these states:
//
//	waiting ──► running (prefill ──► decode) ──► Done or Failed
//	   │  ▲         │
//	   │  └─────────┤ preempted
//	   └────────────┴── cancelled ──────────────► Done
//
// Invariants. A running sequence holds the blocks of the tokens it has, an ended or
// waiting one none. When no block is free for a running one, one is preempted: its
// blocks go back, with their content in the prefix index, and it waits before all that
// never ran until there is room for all it has. Then it reads what was evicted and goes
// on with the token it would have drawn: generator, penalties, grammar, stop texts
// and what was streamed are its own and never touched. The first of those that run is
// not preempted, and nobody new starts while a preempted one waits, so each comes to
// its end. The loop never waits for a reader: a Stream joins the text of
// tokens not yet read into one Delta, so its size is bounded by the answer. A
// cancel takes effect before the next step, also between the pieces of a long
// prompt. What a sequence draws depends on its own tokens, seed and logits
// only, never on the rest of the batch. Prompt lookup drafts tokens and checks
// several in one step; it changes when tokens are drawn, not which.
//
// The engine counts tokens as the decoder sees them: Usage.InputTokens is what
// the request brought, Usage.OutputTokens is what was drawn, with the token that
// ended the answer. What a preempted answer has to read again counts for neither, and
// nor do its own blocks, found again, count as cached: they are RecomputedTokens.
package engine
