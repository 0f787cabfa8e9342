// Package enginetest has a decoder and a tokenizer without weights, for tests
// of the engine and of what stands above it.
package enginetest

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"

	"ragd/inference/model"
)

// Decoder is a deterministic model.Decoder. Like a real one it keeps what it
// was given in cache blocks and reads it back through the block table, so that
// a wrong table shows as a wrong answer. The logits of a position depend on all
// tokens up to it and on nothing else.
type Decoder struct {
	// Next, when set, is the token after a sequence. Otherwise logits are drawn
	// from a generator seeded with the sequence.
	Next func(tokens []int32) int32
	// Before, when set, runs at the start of each step with the batch: to wait,
	// to fail or to panic. The batch must not be kept.
	Before func(model.Batch) error
	// Closed counts calls of Close.
	Closed int

	config model.Config
	cache  []Block
}

// Block is what a cache block keeps.
type Block [model.BlockTokens]int32

// NewDecoder makes a decoder with the vocabulary of Tokenizer.
func NewDecoder(blocks, context int) *Decoder {
	return &Decoder{
		config: model.Config{Architecture: "fake", Name: "fake", Layers: 1, KVHeads: 1, HeadDim: 1, Vocab: Vocabulary, Context: context},
		cache:  make([]Block, blocks),
	}
}

var _ model.Decoder = (*Decoder)(nil)

// Config describes the fake model.
func (d *Decoder) Config() model.Config { return d.config }

// Blocks is the number of cache blocks.
func (d *Decoder) Blocks() int { return len(d.cache) }

// Block is a cache block, to be copied.
func (d *Decoder) Block(id int32) *Block { return &d.cache[id] }

// Close counts.
func (d *Decoder) Close() error {
	d.Closed++
	return nil
}

// Forward writes the tokens of each piece into the cache and makes logits from
// what the cache holds.
func (d *Decoder) Forward(b model.Batch) ([][]float32, error) {
	if d.Before != nil {
		if err := d.Before(b); err != nil {
			return nil, err
		}
	}
	var rows [][]float32
	for _, piece := range b {
		if len(piece.Tokens) == 0 || piece.Logits > len(piece.Tokens) {
			return nil, fmt.Errorf("piece of %d tokens asks for %d rows", len(piece.Tokens), piece.Logits)
		}
		for i, token := range piece.Tokens {
			*d.at(piece.Blocks, piece.Start+i) = token
		}
		end := piece.Start + len(piece.Tokens)
		for n := end - piece.Logits + 1; n <= end; n++ {
			rows = append(rows, d.logits(d.read(piece.Blocks, n)))
		}
	}
	return rows, nil
}

// at is the place of a position in the cache.
func (d *Decoder) at(blocks []int32, position int) *int32 {
	return &d.cache[blocks[position/model.BlockTokens]][position%model.BlockTokens]
}

func (d *Decoder) read(blocks []int32, n int) []int32 {
	tokens := make([]int32, n)
	for i := range tokens {
		tokens[i] = *d.at(blocks, i)
	}
	return tokens
}

// logits peak at Next, or are spread over the printable bytes.
func (d *Decoder) logits(tokens []int32) []float32 {
	row := make([]float32, Vocabulary)
	if d.Next != nil {
		row[d.Next(tokens)] = 10
		return row
	}
	h := fnv.New64a()
	for _, t := range tokens {
		h.Write([]byte{byte(t), byte(t >> 8)})
	}
	draw := rand.New(rand.NewPCG(h.Sum64(), 0))
	for id := range row {
		row[id] = -20
		if id >= ' ' && id <= '~' {
			row[id] = draw.Float32() * 6
		}
	}
	return row
}
