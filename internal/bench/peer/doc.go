// Package peer is the pipeline that ragd is measured against: llama.cpp's server,
// PostgreSQL, and a plain client that does the same steps one after another.
//
//	embed     POST /embedding to a llama-server that holds the embedding model
//	retrieve  one SQL statement: nearest vectors and full text, reciprocal rank fusion
//	generate  POST /completion to a llama-server that holds the answer model, streamed
//
// It reads the same model files and the same chunks. The prompt is ragd's own, word
// for word, and the answer is as long as ragd's: else the two would not do the same
// work. It reranks nothing, packs nothing and renders nothing, which is in its favour.
package peer
