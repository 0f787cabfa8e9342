//go:build ignore

// Print writes the strings of the comparison, one JSON string a line: those of
// nasty.txt, then the generated ones. Run it in this folder.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"

	"ragd/inference/tokenizer/internal/samples"
)

func main() {
	nasty, err := os.ReadFile("nasty.txt")
	if err != nil {
		log.Fatal(err)
	}
	out := bufio.NewWriter(os.Stdout)
	out.Write(nasty)
	for _, s := range samples.Strings() {
		line, err := json.Marshal(s)
		if err != nil {
			log.Fatal(err)
		}
		out.Write(append(line, '\n'))
	}
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
}
