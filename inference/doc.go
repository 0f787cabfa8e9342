// Package inference is the engine: model files in, tokens and vectors out, in one
// process and without foreign libraries. The package itself is empty; this page
// is the tour of its rooms.
//
// # From a file to a model
//
// [ragd/inference/gguf] and [ragd/inference/safetensors] read model containers
// and check every length and offset before they believe it. [ragd/inference/quant]
// knows the number formats that weights are stored in and decodes them in portable
// Go, the reference for every faster kernel. [ragd/inference/tokenizer] makes the
// vocabulary that a container describes: text to ids and back.
//
// [ragd/inference/model] holds the forward passes, one for the decoder family
// (Llama, Qwen, Gemma 3) and one for the encoder family (BERT, XLM-RoBERTa). They
// are written once, over the coarse operations of model.Ops, and read like the
// figures of the papers.
//
// # From a pass to the machine
//
// A backend satisfies model.Ops and owns weights, activations and the KV cache.
// [ragd/inference/cpu] is the one of the host: it splits every operation over
// threads that never sleep for longer than a step lets them, and hands the inner
// loops to a set of [ragd/inference/cpu/kernel], portable Go or the assembly of
// one instruction set, chosen once at start. Whoever computes an element reduces it
// in one order, so a result depends on its sequence and on nothing beside it.
//
// # From a model to a service
//
// [ragd/inference/kvcache] keeps account of the blocks of a KV cache: who holds
// which, and which prefixes are there already. [ragd/inference/schedule] decides
// which requests take part in the next step. [ragd/inference/sample] turns logits
// into a token. [ragd/inference/engine] is the one goroutine that owns a decoder
// and joins these three into a queue of requests with streamed answers, and
// [ragd/inference/remote] keeps the same contract over a server elsewhere.
// [ragd/inference/encode] batches texts through an encoder.
//
// Imports run one way: containers, formats and tokenizers know nothing of models,
// models nothing of backends, and nothing in here knows of retrieval, prompts or
// HTTP.
package inference
