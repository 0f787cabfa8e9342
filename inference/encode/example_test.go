package encode_test

import (
	"context"
	"fmt"
	"log"

	"ragd/inference/cpu"
	"ragd/inference/encode"
)

func ExampleOpen() {
	ctx := context.Background()
	ops, err := cpu.New(cpu.Config{})
	if err != nil {
		log.Fatal(err)
	}
	e, err := encode.Open(ctx, "multilingual-e5-small.gguf", ops, encode.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer e.Close()
	passages, err := e.EmbedPassages(ctx, []string{"The gate opens at six.", "문은 여섯 시에 열린다."})
	if err != nil {
		log.Fatal(err)
	}
	query, tokens, err := e.EmbedQuery(ctx, "When does the gate open?")
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range passages {
		score := float32(0)
		for i, x := range p.Vector {
			score += x * query[i]
		}
		fmt.Printf("%d and %d tokens: %.2f\n", tokens, p.Tokens, score)
	}
}
