package tokenizer_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ragd/inference/gguf"
	"ragd/inference/tokenizer"
	"ragd/inference/tokenizer/internal/samples"
	"ragd/internal/testenv"
)

// strings that the golden files were made from, in their order, and how many of
// them come from nasty.txt.
func goldenStrings(tb testing.TB) (all []string, nasty int) {
	tb.Helper()
	data, err := os.ReadFile("testdata/nasty.txt")
	if err != nil {
		tb.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var s string
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			tb.Fatalf("nasty.txt: %q: %v", line, err)
		}
		all = append(all, s)
	}
	return append(all, samples.Strings()...), len(all)
}

// fingerprint is a line of a golden file.
func fingerprint(ids []int32, whole bool) string {
	if whole {
		return strings.Trim(fmt.Sprint(ids), "[]")
	}
	h := fnv.New32a()
	for _, id := range ids {
		var b [4]byte
		binary.LittleEndian.PutUint32(b[:], uint32(id))
		_, _ = h.Write(b[:])
	}
	return fmt.Sprintf("=%06x", h.Sum32()>>8)
}

func goldenLines(tb testing.TB, name string) []string {
	tb.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "golden", name+".gz"))
	if err != nil {
		tb.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		tb.Fatal(err)
	}
	var lines []string
	scanner := bufio.NewScanner(z)
	for scanner.Scan() {
		lines = append(lines, scanner.Text())
	}
	if err := scanner.Err(); err != nil || len(lines) == 0 {
		tb.Fatalf("%s: %d lines: %v", name, len(lines), err)
	}
	return lines[1:]
}

// checkGolden compares encode with the golden file on all strings; except tells
// those where the reference is known to differ.
func checkGolden(t *testing.T, name string, encode func(string) []int32, except func(string) bool) {
	t.Helper()
	all, nasty := goldenStrings(t)
	lines := goldenLines(t, name)
	if len(lines) != len(all) {
		t.Fatalf("%s has %d lines for %d strings", name, len(lines), len(all))
	}
	compared, wrong := 0, 0
	for i, s := range all {
		if except != nil && except(s) {
			continue
		}
		compared++
		got := fingerprint(encode(s), i < nasty)
		if got == lines[i] {
			continue
		}
		if wrong++; wrong <= 10 {
			t.Errorf("%s, string %d %q:\n got %s (%v)\nwant %s", name, i, s, got, encode(s), lines[i])
		}
	}
	if wrong > 0 {
		t.Errorf("%s: %d of %d strings differ", name, wrong, compared)
	}
	if compared < 2000 {
		t.Errorf("%s: only %d strings compared", name, compared)
	}
}

func plain(tok tokenizer.Tokenizer) func(string) []int32 {
	return func(s string) []int32 { return tok.Encode(nil, s) }
}

func fromGGUF(tb testing.TB, model string) tokenizer.Tokenizer {
	tb.Helper()
	f, err := gguf.Open(testenv.Model(tb, model))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		tb.Fatal(err)
	}
	return tok
}

func miniLM(tb testing.TB) (data, config, vocab []byte) {
	tb.Helper()
	dir := testenv.Model(tb, "all-minilm-l6-v2")
	for name, to := range map[string]*[]byte{"tokenizer.json": &data, "tokenizer_config.json": &config, "vocab.txt": &vocab} {
		var err error
		if *to, err = os.ReadFile(filepath.Join(dir, name)); err != nil {
			tb.Fatal(err)
		}
	}
	return data, config, vocab
}

func TestGoldenSmolLM2(t *testing.T) {
	tok := fromGGUF(t, "smollm2-135m-instruct")
	checkGolden(t, "smollm2", plain(tok), nil)
	checkGolden(t, "smollm2-scaffold", func(s string) []int32 { return tok.EncodeScaffold(nil, s) }, nil)
}

func TestGoldenE5(t *testing.T) {
	checkGolden(t, "e5", plain(fromGGUF(t, "multilingual-e5-small")), nil)
}

func TestGoldenMiniLM(t *testing.T) {
	data, config, vocab := miniLM(t)
	tok, err := tokenizer.FromJSON(data, config)
	if err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "minilm", plain(tok), nil)
	tok, err = tokenizer.FromVocabTxt(vocab, config)
	if err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "minilm", plain(tok), nil)
}

// Behind a user-defined token this package puts the space that starts a text, as
// tokenizers and llama.cpp do; sentencepiece itself does not.
func TestGoldenSmallSentencePiece(t *testing.T) {
	defined := func(s string) bool { return strings.Contains(s, "<think>") || strings.Contains(s, "</tool_call>") }
	tok, err := tokenizer.FromGGUF(smallSentencePiece(t))
	if err != nil {
		t.Fatal(err)
	}
	checkGolden(t, "spm", plain(tok), defined)
}

func TestGoldenSplits(t *testing.T) {
	for _, name := range []string{"gpt-2", "smollm", "llama-bpe", "qwen2"} {
		t.Run(name, func(t *testing.T) {
			checkGolden(t, "split-"+name, func(s string) []int32 {
				lengths, err := tokenizer.SplitLengths(name, s)
				if err != nil {
					t.Fatal(err)
				}
				return lengths
			}, nil)
		})
	}
}
