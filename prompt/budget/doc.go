// Package budget decides what of the history and the evidence goes into a
// prompt. It is pure: it knows token counts and limits, no text.
//
// The room for history and evidence is
//
//	room = min(Window − AnswerTokens, TTFTTokens) − (template + system + tools + question)
//
// The newest whole turns of the history come first, up to half of the room;
// then the candidates, best first; then, in the room that is left, older turns,
// still without a gap. Limits.ContextTokens bounds the evidence alone, the sum
// of ledger.evidence. A candidate that does not fit is skipped and the search
// goes on: a shorter one behind it may fit.
//
// The newest question, the system message, tool results and the template are
// never cut: when they do not fit the window by themselves, Pack returns an
// *OverBudgetError. A time to first token that they alone exceed is no error;
// then no evidence fits, and the caller reports the prediction.
package budget
