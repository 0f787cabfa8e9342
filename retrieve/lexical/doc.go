// Package lexical finds chunks by their words: one analyser for every language
// and BM25 over posting lists that lie in PostgreSQL as plain rows.
//
// The ranking is Okapi BM25 as in Robertson and Zaragoza, "The Probabilistic
// Relevance Framework: BM25 and Beyond" (2009), with the idf that cannot become
// negative: ln(1 + (N − n + ½) / (n + ½)).
package lexical
