package model_test

import (
	"context"
	"fmt"
	"log"

	"ragd/inference/cpu"
	"ragd/inference/gguf"
	"ragd/inference/model"
)

func ExampleLoadDecoder() {
	f, err := gguf.Open("SmolLM2-135M-Instruct.Q4_1.gguf")
	if err != nil {
		log.Fatal(err)
	}
	ops, err := cpu.New(cpu.Config{})
	if err != nil {
		log.Fatal(err)
	}
	m, err := model.LoadDecoder(context.Background(), f, ops, model.LoadConfig{Blocks: 64})
	if err != nil {
		log.Fatal(err)
	}
	defer m.Close()
	// The weights are in memory now.
	if err := f.Close(); err != nil {
		log.Fatal(err)
	}
	prompt := model.Piece{Tokens: []int32{504, 3575, 282, 4649, 314}, Blocks: []int32{0}, Logits: 1}
	logits, err := m.Forward(model.Batch{prompt})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(logits), len(logits[0]) == m.Config().Vocab)
}
