package chunk_test

import (
	"fmt"
	"strings"

	"ragd/ingest"
	"ragd/ingest/chunk"
	"ragd/ingest/ingesttest"
)

func ExampleChunker() {
	embedder := &ingesttest.FakeEmbedder{}
	chunker, err := chunk.New(embedder, chunk.DefaultConfig(embedder.MaxTokens()))
	if err != nil {
		fmt.Println(err)
		return
	}
	chunks, err := chunker.Chunk(&ingest.Document{
		Path: "pumps.md", Markdown: true,
		Text: "# Pumps\n\nThe pump is blue.\n\n## Seals\n\nSeals are changed each spring.\n",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range chunks {
		fmt.Printf("%s: %s (%d tokens)\n", strings.Join(c.Heading, " > "), c.Text, c.Tokens)
	}
	// Output:
	// Pumps: The pump is blue. (10 tokens)
	// Pumps > Seals: Seals are changed each spring. (17 tokens)
}
