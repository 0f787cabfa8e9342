package lexical

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"

	"ragd/ingest/postings"
)

func termsOf(text string) string {
	return strings.Join(slices.Sorted(maps.Keys(Analyzer{}.Terms(text))), " ")
}

func TestTerms(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"stems without stop words", "The pumps are running", "pump run"},
		{"particle stripped, marked, pairs", "밸브를", "^밸 밸브"},
		{"longest ending first", "사무실에서는", "^사 무실 사무"},
		{"two syllables must remain", "나라", "^나 나라"},
		{"one syllable", "물", "^물"},
		{"scripts part", "PDF파일을 열다", "^열 ^파 pdf 열다 파일"},
		{"identifier whole and split", "ERR-4402", "4402 err err-4402"},
		{"with a particle", "ERR-4402가", "4402 ^가 err err-4402"},
		{"snake case", "max_spool_len", "len max max_spool_len spool"},
		{"camel case", "MaxSpoolTemp", "max maxspooltemp spool temp"},
		{"acronym in camel case", "HTTPServer", "http httpserver server"},
		{"single letters are no parts", "mRNA", "mrna rna"},
		{"version", "v1.2.3", "1.2.3 2 3 v1 v1.2.3"},
		{"number with a part", "7F-00A9-3", "00a9 3 7f 7f-00a9-3"},
		{"full stop ends", "the end. Next", "end next"},
		{"kana and Han", "東京タワー", "タワ ワー 京タ 東京"},
		{"one Han character", "水", "水"},
		{"Thai", "น้ำ", "\u0e19\u0e49 \u0e49\u0e4d \u0e4d\u0e32"},
		{"another script", "Привет, мир", "мир привет"},
		{"emoji", "ok 🚀!", "ok 🚀"},
		{"full width", "ＡＢＣ１２", "abc12"},
		{"soft hyphen", "hy\u00adphen", "hyphen"},
		{"nothing", " .,-_!? \t\n", ""},
		{"damaged", "a\xff\xfeb", "b"},
	} {
		if got := termsOf(c.text); got != c.want {
			t.Errorf("%s: %q gives %q, want %q", c.name, c.text, got, c.want)
		}
	}
}

func TestIsIdentifier(t *testing.T) {
	for term, want := range map[string]bool{
		"err-4402": true, "2.10.3": true, "v2.1": true, "7f-00a9-3": true, "max_len": true, "2024-01-02": true,
		"well-known": false, "3.14": false, "4402": false, "e.g": false, "plain": false, "^밸": false, "": false,
	} {
		if got := isIdentifier(term); got != want {
			t.Errorf("%q: %v", term, got)
		}
	}
}

func TestCounts(t *testing.T) {
	got := Analyzer{}.Terms("valve Valve VALVES, 밸브 밸브가")
	if got["valv"] != 3 || got["^밸"] != 2 || got["밸브"] != 2 || postings.Length(got) != 7 {
		t.Errorf("%v", got)
	}
}

// The same text in another Unicode form has the same terms.
func TestFormsOfUnicode(t *testing.T) {
	for _, text := range []string{"한국어 문서를 찾는다", "naïve café", "ERR-12 각"} {
		want := termsOf(text)
		for _, f := range []norm.Form{norm.NFC, norm.NFD, norm.NFKC, norm.NFKD} {
			if got := termsOf(f.String(text)); got != want {
				t.Errorf("%q: %q, want %q", f.String(text), got, want)
			}
		}
	}
}

// Joining two texts with a space adds their counts: no term spans a space.
func TestTermsAddUp(t *testing.T) {
	alphabet := rapid.StringOfN(rapid.RuneFrom([]rune("aZ09-_. 가나을ㄱ水ー́🚀\u200dя\n")), 0, 30, -1)
	rapid.Check(t, func(t *rapid.T) {
		a, b := alphabet.Draw(t, "a"), alphabet.Draw(t, "b")
		want := Analyzer{}.Terms(a)
		for term, n := range (Analyzer{}).Terms(b) {
			want[term] += n
		}
		if got := (Analyzer{}).Terms(a + " " + b); !maps.Equal(got, want) {
			t.Fatalf("%q + %q: %v, want %v", a, b, got, want)
		}
	})
}

func FuzzTerms(f *testing.F) {
	for _, s := range []string{
		"ERR-4402가", "snake_case camelCase v1.2.3", "한국어를", "\u1112\u1161\u11ab", "東京", "🚀\ufe0f", "a\u200db", "\xff-\x00",
		strings.Repeat("x", 200), strings.Repeat("é", 100), "-_.", "a-", "\u2010a\u2010b",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for term, n := range (Analyzer{}).Terms(s) {
			if n < 1 || term == "" || !utf8.ValidString(term) || strings.ContainsRune(term, 0) || utf8.RuneCountInString(term) > maxTerm {
				t.Errorf("term %q × %d", term, n)
			}
		}
	})
}
