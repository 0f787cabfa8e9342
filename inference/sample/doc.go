// Package sample turns logits into the next token.
//
// The order is fixed: grammar mask → repetition penalty → temperature → top-k
// → top-p → min-p → draw. Each filter works on the distribution that the one
// before it left, renormalised. The generator belongs to one request, so the
// same seed over the same logits gives the same tokens, whatever else runs.
package sample
