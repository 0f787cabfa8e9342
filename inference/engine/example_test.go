package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"

	"ragd/inference/engine"
	"ragd/inference/engine/enginetest"
)

func Example() {
	ctx := context.Background()
	tok := enginetest.Tokenizer{}
	prompt := tok.Encode(nil, "Where is the lighthouse?")
	dec := enginetest.NewDecoder(64, 1024)
	dec.Next = enginetest.Reciter(len(prompt), "On the northern cape.")

	e, err := engine.New(dec, tok, engine.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer e.Close(ctx)
	stream, err := e.Submit(ctx, engine.Request{Tokens: prompt, MaxTokens: 100})
	if err != nil {
		fmt.Println(err)
		return
	}
	for {
		event, err := stream.Next(ctx)
		if errors.Is(err, io.EOF) {
			return
		}
		switch ev := event.(type) {
		case engine.Delta:
			fmt.Print(ev.Text)
		case engine.Done:
			fmt.Printf(" (%s, %d tokens in, %d out)\n", ev.Reason, ev.Usage.InputTokens, ev.Usage.OutputTokens)
		}
	}
	// Output: On the northern cape. (stop, 24 tokens in, 22 out)
}
