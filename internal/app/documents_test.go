package app

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/text/encoding/korean"

	"ragd/ingest"
	"ragd/internal/httpapi"
)

// statuses maps the base name of each file of a report to what became of it.
func statuses(r ingest.Report) map[string]ingest.FileResult {
	out := map[string]ingest.FileResult{}
	for _, f := range r.Files {
		out[filepath.Base(f.Path)] = f
	}
	return out
}

// extracted asks for the documents' own words.
func (l *live) extracted(t *testing.T, collection, question string) string {
	t.Helper()
	return l.asked(t, body{"question": question, "collection": collection, "answer_mode": "extract"}).Answer
}

// stored returns the texts of all chunks of a collection, in order.
func (l *live) stored(t *testing.T, collection string) []string {
	t.Helper()
	rows, err := l.pool.Query(t.Context(), `
		SELECT c.text FROM ragd.chunks c JOIN ragd.documents d ON d.id = c.document_id JOIN ragd.collections k ON k.id = d.collection_id
		WHERE k.name = $1 ORDER BY d.path, c.ordinal`, collection)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var texts []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		texts = append(texts, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return texts
}

// answers expects each question's answer to hold a text.
func (l *live) answers(t *testing.T, collection string, want map[string]string) {
	t.Helper()
	for question, text := range want {
		if got := l.extracted(t, collection, question); !strings.Contains(got, text) {
			t.Errorf("%s: %q does not hold %q", question, got, text)
		}
	}
}

// testDamagedText: zero bytes and broken UTF-8 are told of, and what stands on
// both sides of them is found.
func testDamagedText(t *testing.T, l *live) {
	dir := write(t, map[string]string{
		"zero.txt":   "The north sluice opens at noon.\x00 The south sluice opens at dusk.",
		"fence.md":   "# Valves\n\n```\nvalve V-7 is \x00 brass\n```\n\nValve V-9 is made of steel.\n",
		"broken.txt": "The night porter is called Odell. \xff\xfe\xc3 His desk stands in the east wing.",
		"good.txt":   "The ferry leaves from pier three.",
	})
	r := l.ingest(t, "damaged", false, dir)
	if r.Indexed != 4 {
		t.Fatalf("%+v", r)
	}
	for name, f := range statuses(r) {
		if told := len(f.Warnings) > 0; told != (name != "good.txt") {
			t.Errorf("%s: warnings %v", name, f.Warnings)
		}
	}
	l.answers(t, "damaged", map[string]string{
		"When does the north sluice open?": "noon", "When does the south sluice open?": "dusk",
		"What is valve V-9 made of?": "steel", "Who is the night porter?": "Odell", "Where does the ferry leave from?": "pier three",
	})
	for _, text := range l.stored(t, "damaged") {
		if strings.ContainsRune(text, 0) {
			t.Errorf("a stored chunk holds U+0000: %q", text)
		}
	}
}

// testLegacyEncodings: Korean text in old encodings comes out as written, with
// syllables that only CP949 has.
func testLegacyEncodings(t *testing.T, l *live) {
	texts := map[string]string{
		"cp949.txt":  "창고 관리 수첩. 열쇠 담당자의 별명은 똠방각하이다. 펲시 상자는 둘째 선반에 있다. 쓩 소리가 나면 경보를 끈다.",
		"euckr.csv":  "물건,수량\n나사,420\n고무줄,77\n",
		"short.txt":  "암호는 밤나무.",
		"modern.txt": "UTF-8로 쓴 글: 휴게실은 삼층에 있다.",
	}
	files := map[string]string{"modern.txt": texts["modern.txt"]}
	for _, name := range []string{"cp949.txt", "euckr.csv", "short.txt"} {
		old, err := korean.EUCKR.NewEncoder().String(texts[name])
		if err != nil {
			t.Fatal(err)
		}
		files[name] = old
	}
	r := l.ingest(t, "legacy", false, write(t, files))
	if r.Indexed != 4 {
		t.Fatalf("%+v", r)
	}
	for name, f := range statuses(r) {
		if name == "modern.txt" && (f.Charset != "utf-8" || len(f.Warnings) != 0) || name != "modern.txt" && f.Charset == "utf-8" {
			t.Errorf("%s was read as %s, warnings %v", name, f.Charset, f.Warnings)
		}
	}
	all := strings.Join(l.stored(t, "legacy"), "\n")
	for _, word := range []string{"똠방각하", "펲시", "쓩", "고무줄", "밤나무", "삼층"} {
		if !strings.Contains(all, word) {
			t.Errorf("%q is not as it was written", word)
		}
	}
	if strings.ContainsRune(all, '\uFFFD') {
		t.Error("characters were replaced")
	}
	l.answers(t, "legacy", map[string]string{"열쇠 담당자의 별명은?": "똠방각하", "휴게실은 어디에 있나?": "삼층"})
}

// testFrontMatter: metadata is no heading, and what only looks like it stays text.
func testFrontMatter(t *testing.T, l *live) {
	dir := write(t, map[string]string{
		"normal.md":   "---\ntitle: Winch\ntags: [tools]\n---\n\n# Winch\n\nThe winch pulls two tonnes.\n",
		"rule.md":     "Opening words.\n\n---\n\nstate: the gauge reads nine\n\n---\n\nClosing words.\n",
		"unclosed.md": "---\ntitle: Ladder\n\nThe ladder holds ninety kilograms.\n",
		"crlf.md":     "\ufeff---\r\ntitle: Ramp\r\n---\r\n\r\nThe ramp is ice-free.\r\n",
		"invalid.md":  "---\na: [b\n: c\n---\n\nThe hatch is square.\n",
	})
	if r := l.ingest(t, "frontmatter", false, dir); r.Indexed != 5 {
		t.Fatalf("%+v", r)
	}
	texts := l.stored(t, "frontmatter")
	for _, want := range []string{"two tonnes", "the gauge reads nine", "Opening words", "Closing words", "ninety kilograms", "ice-free", "square"} {
		if !slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, want) }) {
			t.Errorf("%q is lost", want)
		}
	}
	for _, text := range texts {
		if strings.Contains(text, "tags:") || strings.Contains(text, "title: Ramp") {
			t.Errorf("front matter is text: %q", text)
		}
	}
	for _, heading := range l.headings(t, "frontmatter") {
		if strings.Contains(heading, ":") {
			t.Errorf("front matter is a heading: %q", heading)
		}
	}
}

// headings lists the distinct heading paths of a collection.
func (l *live) headings(t *testing.T, collection string) []string {
	t.Helper()
	rows, err := l.pool.Query(t.Context(), `
		SELECT DISTINCT array_to_string(c.heading, ' > ') FROM ragd.chunks c JOIN ragd.documents d ON d.id = c.document_id
		JOIN ragd.collections k ON k.id = d.collection_id WHERE k.name = $1 ORDER BY 1`, collection)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var out []string
	for rows.Next() {
		var path string
		if err := rows.Scan(&path); err != nil {
			t.Fatal(err)
		}
		out = append(out, path)
	}
	return out
}

// testHeadings: a comment inside a code block opens no section.
func testHeadings(t *testing.T, l *live) {
	dir := write(t, map[string]string{"build.md": "# Build\n\nFirst the tools.\n\n```sh\n# install them\nmake tools\n```\n\n" +
		"## Check\n\n~~~~\n# not a heading\n~~~\n## nor this\n~~~~\n\nThen test it.\n\n" +
		"## Last\n\nThe fuse F-3 is the spare one.\n\n```\n# open to the end\n"})
	l.ingest(t, "headings", false, dir)
	want := []string{"Build", "Build > Check", "Build > Last"}
	if got := l.headings(t, "headings"); !slices.Equal(got, want) {
		t.Errorf("headings %q, want %q", got, want)
	}
	l.answers(t, "headings", map[string]string{"Which fuse is the spare one?": "F-3"})
}

// testLinks: a folder that links to itself ends, links that lead out are not
// followed, pipes do not block, and each is told of.
func testLinks(t *testing.T, l *live) {
	outside := write(t, map[string]string{"secret.txt": "The outside word is WALRUS."})
	dir := write(t, map[string]string{"inside.txt": "The inside word is NEWT.", "sub/more.txt": "More words inside."})
	for name, target := range map[string]string{
		"loop": dir, "sub/up": "..", "out": outside, "dangling.txt": filepath.Join(dir, "gone.txt"), "out.txt": filepath.Join(outside, "secret.txt"),
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe.txt"), 0o644); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	r := l.ingest(t, "links", false, dir)
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %v", took)
	}
	if r.Indexed != 2 {
		t.Errorf("%+v", r)
	}
	for _, name := range []string{"pipe.txt", "dangling.txt"} {
		if f := statuses(r)[name]; f.Reason == "" {
			t.Errorf("%s is not told of: %+v", name, f)
		}
	}
	if texts := strings.Join(l.stored(t, "links"), " "); strings.Contains(texts, "WALRUS") || !strings.Contains(texts, "NEWT") {
		t.Errorf("stored %q", texts)
	}
	root := filepath.Join(t.TempDir(), "root")
	if err := os.Symlink(outside, root); err != nil {
		t.Fatal(err)
	}
	if r := l.ingest(t, "links-root", false, root); r.Indexed != 1 {
		t.Errorf("a root that is a link: %+v", r)
	}
}

// testNothingInIt: files without text are skipped with a reason, blank questions
// are refused.
func testNothingInIt(t *testing.T, l *live) {
	dir := write(t, map[string]string{
		"zero.md": "", "spaces.txt": "  \t ", "breaks.md": "\n\n\r\n\n", "bom.txt": "\ufeff", "hidden.txt": "\u200b\u2060\u00ad",
		"titles.md": "# One\n\n## Two\n", "markup.html": "<html><body><br><hr><div></div></body></html>",
		"sections.md": "# Room\n\n## Empty\n\n## Full\n\nThe carpet is green.\n\n## Empty again\n",
	})
	r := l.ingest(t, "nothing", false, dir)
	if r.Indexed != 1 || r.Skipped != 7 || r.Chunks != 1 {
		t.Fatalf("%+v", r)
	}
	for name, f := range statuses(r) {
		if f.Status == ingest.Skipped && f.Reason == "" {
			t.Errorf("%s was skipped without a reason", name)
		}
	}
	if got := l.headings(t, "nothing"); !slices.Equal(got, []string{"Room > Full"}) {
		t.Errorf("headings %q", got)
	}
	for _, q := range []string{"", "  ", "\n\t\n", "\u200b", "\ufeff"} {
		if field, _ := l.refused(t, body{"question": q}, 400, "invalid"); field != "question" {
			t.Errorf("%q: the field is %q", q, field)
		}
	}
}

// testLongRuns: text without spaces is cut in linear time into chunks within the
// embedder's limit, and its end is found.
func testLongRuns(t *testing.T, l *live) {
	dir := write(t, map[string]string{
		"hangul.txt": strings.Repeat("가나다라마바사아자차카타파하", 150) + "끝말은수리부엉이이다",
		"latin.txt":  "a " + strings.Repeat("qwertyuiopasdfghjkl", 200) + "FINALHERON",
		"json.json":  "{" + strings.Repeat(`"k":"vvvvvvvv",`, 200) + `"last":"PELICAN-5"}`,
	})
	r := l.ingest(t, "long", false, dir)
	if r.Indexed != 3 {
		t.Fatalf("%+v", r)
	}
	texts := l.stored(t, "long")
	all := strings.Join(texts, "")
	for _, end := range []string{"수리부엉이", "FINALHERON", "PELICAN-5"} {
		if !strings.Contains(all, end) {
			t.Errorf("%s is lost", end)
		}
	}
	for _, text := range texts {
		if n := l.embed.CountPassage(text); n > l.embed.MaxTokens() || strings.ContainsRune(text, '\uFFFD') {
			t.Errorf("a chunk of %d tokens, %d are allowed: %.60q", n, l.embed.MaxTokens(), text)
		}
	}
}

// testChanged: a changed document answers with its new text only, a deleted one
// not at all, while questions go on.
func testChanged(t *testing.T, l *live) {
	dir := write(t, map[string]string{"tower.md": "The tower clock is called BORIS.\n\nThe tower cat is grey.\n", "other.md": "The cellar holds apples.\n"})
	l.ingest(t, "changing", false, dir)
	l.answers(t, "changing", map[string]string{"What is the tower clock called?": "BORIS", "What colour is the tower cat?": "grey"})

	stop := make(chan struct{})
	var asking errgroup.Group
	asking.Go(func() error {
		for {
			select {
			case <-stop:
				return nil
			default:
			}
			got := l.extracted(t, "changing", "What is the tower clock called?")
			if strings.Contains(got, "BORIS") && strings.Contains(got, "AGATHA") {
				return fmt.Errorf("half a document: %q", got)
			}
		}
	})
	path := filepath.Join(dir, "tower.md")
	if err := os.WriteFile(path, []byte("The tower clock is called AGATHA.\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if r := l.ingest(t, "changing", false, dir); r.Indexed != 1 || r.Unchanged != 1 {
		t.Errorf("%+v", r)
	}
	l.answers(t, "changing", map[string]string{"What is the tower clock called?": "AGATHA"})
	if texts := strings.Join(l.stored(t, "changing"), " "); strings.Contains(texts, "BORIS") || strings.Contains(texts, "grey") {
		t.Errorf("the old text is still there: %q", texts)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if r := l.ingest(t, "changing", false, dir); r.Pruned != 0 {
		t.Errorf("without prune: %+v", r)
	}
	if r := l.ingest(t, "changing", true, dir); r.Pruned != 1 {
		t.Errorf("with prune: %+v", r)
	}
	close(stop)
	if err := asking.Wait(); err != nil {
		t.Error(err)
	}
	if got := l.extracted(t, "changing", "What is the tower clock called?"); strings.Contains(got, "AGATHA") {
		t.Errorf("the deleted document answers: %q", got)
	}
	var left int
	err := l.pool.QueryRow(t.Context(), `SELECT count(*) FROM ragd.vectors v WHERE NOT EXISTS (SELECT FROM ragd.chunks c WHERE c.id = v.chunk_id)`).Scan(&left)
	if err != nil || left != 0 {
		t.Errorf("%d vectors without a chunk, %v", left, err)
	}
}

// testSameFolderAtOnce: runs over the same files side by side all succeed and
// store each document once.
func testSameFolderAtOnce(t *testing.T, l *live) {
	files := map[string]string{}
	for i := range 8 {
		files[fmt.Sprintf("rack%d.txt", i)] = fmt.Sprintf("Rack %d holds part RK-%03d.", i, i)
	}
	files["copy.txt"] = files["rack3.txt"]
	dir := write(t, files)
	reports := make([]ingest.Report, 4)
	var g errgroup.Group
	for i := range reports {
		g.Go(func() (err error) {
			reports[i], err = l.Ingest(t.Context(), httpapi.IngestRequest{Paths: []string{dir}, Collection: "once"}, nil)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	indexed := 0
	for _, r := range reports {
		if !r.Complete() || r.Found != len(files) {
			t.Errorf("%+v", r)
		}
		indexed += r.Indexed
	}
	if n := len(l.stored(t, "once")); n != len(files) || indexed != n {
		t.Errorf("%d chunks, %d documents indexed, of %d files", n, indexed, len(files))
	}
}
