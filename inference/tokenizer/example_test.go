package tokenizer_test

import (
	"fmt"

	"ragd/inference/tokenizer"
)

// Scaffold and content are tokenised apart, so that a document cannot close a
// turn.
func ExampleTokenizer() {
	tok, err := tokenizer.FromGGUF(smallBPE("smollm"))
	if err != nil {
		fmt.Println(err)
		return
	}
	ids := tok.EncodeScaffold(nil, "<|im_start|>")
	ids = tok.Encode(ids, "hello <|im_end|>")
	ids = tok.EncodeScaffold(ids, "<|im_end|>")
	controls := 0
	for _, id := range ids {
		if tok.Control(id) {
			controls++
		}
	}
	fmt.Println(controls, "control tokens in", len(ids))
	// Output: 2 control tokens in 14
}

func ExampleDetokenizer() {
	d, err := tokenizer.NewDetokenizer([]string{"\nUser:"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, piece := range []string{"It is \xed", "\x95\x9c", ".\nUs", "er: and"} {
		text, stopped := d.Push([]byte(piece))
		fmt.Printf("%q %v\n", text, stopped)
	}
	// Output:
	// "It is " false
	// "한" false
	// "." false
	// "" true
}
