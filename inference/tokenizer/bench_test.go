package tokenizer_test

import (
	"strings"
	"testing"

	"ragd/inference/tokenizer"
	"ragd/inference/tokenizer/internal/samples"
)

// benchmarkText is about a megabyte of the sample strings.
func benchmarkText() string {
	var b strings.Builder
	for b.Len() < 1<<20 {
		for _, s := range samples.Strings() {
			b.WriteString(s)
			b.WriteByte('\n')
		}
	}
	return b.String()
}

func benchmarkEncode(b *testing.B, tok tokenizer.Tokenizer, text string) {
	b.Helper()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var ids []int32
	for b.Loop() {
		ids = tok.Encode(ids[:0], text)
	}
	b.ReportMetric(float64(len(text))/float64(len(ids)), "bytes/token")
}

func BenchmarkEncode(b *testing.B) {
	text := benchmarkText()
	english := strings.Repeat("The budget decides which passages reach the model, and the ledger says why the others did not. ", 1000)
	data, config, _ := miniLM(b)
	bert, err := tokenizer.FromJSON(data, config)
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct {
		name string
		tok  tokenizer.Tokenizer
	}{
		{"bpe-smollm2", fromGGUF(b, "smollm2-135m-instruct")},
		{"unigram-e5", fromGGUF(b, "multilingual-e5-small")},
		{"wordpiece-minilm", bert},
	} {
		b.Run(c.name+"/mixed", func(b *testing.B) { benchmarkEncode(b, c.tok, text) })
		b.Run(c.name+"/english", func(b *testing.B) { benchmarkEncode(b, c.tok, english) })
	}
}

// One run of letters without a break: time must grow with its length only.
func BenchmarkUnbrokenRun(b *testing.B) {
	for _, size := range []int{1 << 16, 1 << 20, 1 << 23} {
		text := strings.Repeat("abcdefgh", size/8)
		for kind, tok := range small(b) {
			b.Run(kind+"/"+byteSize(size), func(b *testing.B) { benchmarkEncode(b, tok, text) })
		}
	}
}

func byteSize(n int) string {
	if n < 1<<20 {
		return "64KiB"
	}
	return map[int]string{1 << 20: "1MiB", 1 << 23: "8MiB"}[n]
}

func BenchmarkDetokenizer(b *testing.B) {
	pieces := [][]byte{[]byte(" the"), []byte(" budget"), []byte(" 가"), []byte("나"), []byte("."), []byte("\n")}
	d, err := tokenizer.NewDetokenizer([]string{"\n\nUser:", "<|im_end|>", "END"})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		d.Push(pieces[i%len(pieces)])
		i++
	}
}

func BenchmarkLoad(b *testing.B) {
	for _, name := range []string{"smollm2-135m-instruct", "multilingual-e5-small"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				fromGGUF(b, name)
			}
		})
	}
}
