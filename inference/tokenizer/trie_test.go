package tokenizer

import (
	"encoding/binary"
	"errors"
	"sort"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// entries lists a map.
func entries(m map[string]int32) []trieEntry {
	var list []trieEntry
	for k, v := range m {
		list = append(list, trieEntry{k, v})
	}
	return list
}

func TestTrieFindsTheLongestKey(t *testing.T) {
	word := rapid.StringOfN(rapid.RuneFrom([]rune("ab\u0001é가😀\u00ff")), 1, 8, -1)
	rapid.Check(t, func(rt *rapid.T) {
		keys := rapid.MapOfN(word, rapid.Int32Range(0, 1<<30), 0, 200).Draw(rt, "keys")
		built, err := buildTrie(entries(keys))
		if err != nil {
			rt.Fatal(err)
		}
		text := rapid.StringOfN(rapid.RuneFrom([]rune("ab\u0001é가😀\u00ffx")), 0, 12, -1).Draw(rt, "text")
		want := ""
		for k := range keys {
			if strings.HasPrefix(text, k) && len(k) > len(want) {
				want = k
			}
		}
		n, v := built.longest(text)
		if n != len(want) || n > 0 && v != keys[want] {
			rt.Fatalf("longest(%q) = %d %d, want %q %d", text, n, v, want, keys[want])
		}
	})
}

func TestTrieHoldsEveryKey(t *testing.T) {
	keys := map[string]int32{}
	for i := range int32(60_000) { // enough for many blocks
		keys[string(binary.BigEndian.AppendUint32(nil, uint32(i)*2654435761|0x01010101))] = i
	}
	built, err := buildTrie(entries(keys))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range keys {
		if n, got := built.longest(k + "tail"); n != len(k) || got != v {
			t.Fatalf("longest(%q) = %d, %d; want %d, %d", k, n, got, len(k), v)
		}
	}
}

func TestTrieRefusesKeys(t *testing.T) {
	for _, key := range []string{"", "a\x00b", strings.Repeat("k", maxKey+1)} {
		if _, err := buildTrie([]trieEntry{{key, 1}}); !errors.Is(err, ErrMalformed) {
			t.Errorf("key of %d bytes: error %v", len(key), err)
		}
	}
}

// buildCharsmap writes a precompiled_charsmap.
func buildCharsmap(tb testing.TB, rules map[string]string) []byte {
	tb.Helper()
	values, texts := map[string]int32{}, ""
	var sources []string
	for from := range rules {
		sources = append(sources, from)
	}
	sort.Strings(sources)
	for _, from := range sources {
		values[from] = int32(len(texts))
		texts += rules[from] + "\x00"
	}
	built, err := buildTrie(entries(values))
	if err != nil {
		tb.Fatal(err)
	}
	blob := binary.LittleEndian.AppendUint32(nil, uint32(4*len(built)))
	for _, unit := range built {
		blob = binary.LittleEndian.AppendUint32(blob, unit)
	}
	return append(blob, texts...)
}

func normalise(c *charsmap, text string) string {
	var b strings.Builder
	for text != "" {
		part, n := c.next(text)
		b.WriteString(part)
		text = text[n:]
	}
	return b.String()
}

func TestCharsmap(t *testing.T) {
	c, err := readCharsmap(buildCharsmap(t, map[string]string{"①": "1", "か\u3099": "が", "か": "か", "\u0001": "", "\t": " ", "ﷺ": "صلى"}))
	if err != nil {
		t.Fatal(err)
	}
	for in, want := range map[string]string{
		"a①b": "a1b", "か\u3099か": "がか", "x\u0001y\tz": "xy z", "ﷺ": "صلى", "": "", "bad\xffbyte": "bad\uFFFDbyte", "\x00": "\x00",
	} {
		if got := normalise(c, in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
}

func TestCharsmapRefused(t *testing.T) {
	for _, blob := range [][]byte{{1}, {0, 0, 0, 0}, {3, 0, 0, 0, 1, 2, 3}, {255, 255, 255, 255, 1, 2, 3, 4}, {8, 0, 0, 0, 1, 2, 3, 4}} {
		if _, err := readCharsmap(blob); !errors.Is(err, ErrMalformed) {
			t.Errorf("blob %v: error %v", blob, err)
		}
	}
}

func FuzzCharsmap(f *testing.F) {
	f.Add(buildCharsmap(f, map[string]string{"ab": "c", "é": "e"}), "abé")
	f.Add([]byte{4, 0, 0, 0, 255, 255, 255, 255}, "x")
	f.Fuzz(func(t *testing.T, blob []byte, text string) {
		if c, err := readCharsmap(blob); err == nil {
			normalise(c, text)
		}
	})
}
