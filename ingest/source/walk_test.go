package source_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ragd/ingest"
	"ragd/ingest/source"
)

func newSource(t testing.TB, maxBytes int64) *source.Source {
	t.Helper()
	c := source.DefaultConfig()
	c.MaxBytes = maxBytes
	c.PDF.CacheDir = filepath.Join(os.TempDir(), "ragd-test-pdfium") // compiling takes seconds
	s, err := source.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// tree makes files under a fresh folder named "root" and returns its path.
func tree(t *testing.T, files ...string) string {
	t.Helper()
	root := filepath.Join(t.TempDir(), "root")
	for _, f := range append(files, "keep.txt") {
		name := filepath.Join(root, f)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte("Text of "+f), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// list walks and gives "path" or "path: error" a line.
func list(t *testing.T, s *source.Source, roots ...string) []string {
	t.Helper()
	l, err := s.Find(t.Context(), roots)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range l.Files {
		line := f.Path
		if f.Err != nil {
			line += ": " + f.Err.Error()
		}
		out = append(out, line)
	}
	return out
}

func TestFindIsSortedAndSkipsHidden(t *testing.T) {
	root := tree(t, "b/z.md", "b/a.md", "a.md", ".git/config", ".env", "b/.hidden/x.md", "한글/문서.md")
	want := []string{"root/a.md", "root/b/a.md", "root/b/z.md", "root/keep.txt", "root/한글/문서.md"}
	if d := cmp.Diff(want, list(t, newSource(t, 1<<20), root, root+"/", filepath.Join(root, "b", ".."))); d != "" {
		t.Error(d)
	}
}

func TestFindNamesFilesAsTheirFolderWould(t *testing.T) {
	root := tree(t, "b/a.md")
	t.Chdir(root)
	s := newSource(t, 1<<20)
	for roots, want := range map[string]string{
		"keep.txt": "root/keep.txt", "./keep.txt": "root/keep.txt", "../root/keep.txt": "root/keep.txt", "b/a.md": "b/a.md", "b": "b/a.md", "./b/": "b/a.md",
	} {
		if d := cmp.Diff([]string{want}, list(t, s, roots)); d != "" {
			t.Errorf("%s: %s", roots, d)
		}
	}
}

// TestFindLinks holds OB-07: loops, links that leave the root, links to
// nothing, a pipe, and the root given as a link.
func TestFindLinks(t *testing.T) {
	root := tree(t, "a/b/inside.txt", "c/d.txt")
	outside := filepath.Join(filepath.Dir(root), "outside.txt")
	if err := os.WriteFile(outside, []byte("OUTSIDE"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{
		"root/self": ".", "root/a/up": "../..", "root/a/to-c": "../c", "root/c/to-a": "../a", "root/dangling.txt": "nowhere",
		"root/alias.txt": "a/b/inside.txt", "root/leaves.txt": "../outside.txt", "root/ring1": "ring2", "root/ring2": "ring1", "link": "root",
	} {
		if err := os.Symlink(target, filepath.Join(filepath.Dir(root), name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(root, "pipe.txt"), 0o644); err != nil {
		t.Fatal(err)
	}
	var read, skipped []string
	for _, line := range list(t, newSource(t, 1<<20), filepath.Join(filepath.Dir(root), "link")) {
		if path, reason, bad := strings.Cut(line, ": not a regular file: "); bad {
			skipped = append(skipped, strings.TrimPrefix(path, "link/")+" "+reason)
		} else {
			read = append(read, line)
		}
	}
	if d := cmp.Diff([]string{"link/a/b/inside.txt", "link/c/d.txt", "link/keep.txt"}, read); d != "" {
		t.Error(d)
	}
	want := []string{
		"a/to-c symbolic link", "a/up symbolic link", "alias.txt symbolic link", "c/to-a symbolic link", "dangling.txt symbolic link to nothing",
		"leaves.txt symbolic link", "pipe.txt named pipe", "ring1 symbolic link to nothing", "ring2 symbolic link to nothing", "self symbolic link",
	}
	if d := cmp.Diff(want, skipped); d != "" {
		t.Error(d)
	}
}

func TestFindReportsWhatCannotBeRead(t *testing.T) {
	root := tree(t, "big.txt", "bad\xff.md", "line\nbreak.md")
	if err := os.Truncate(filepath.Join(root, "big.txt"), 101); err != nil {
		t.Fatal(err)
	}
	l, err := newSource(t, 100).Find(t.Context(), []string{root, filepath.Join(root, "missing"), "/dev/null"})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]error{
		"root/bad\ufffd.md": ingest.ErrFileName, "root/big.txt": ingest.ErrTooLarge, "missing": fs.ErrNotExist, "dev/null": ingest.ErrNotRegular,
		"root/keep.txt": nil, "root/line\nbreak.md": nil,
	}
	for _, f := range l.Files {
		expected, known := want[f.Path]
		if !known || !errors.Is(f.Err, expected) {
			t.Errorf("%q: %v", f.Path, f.Err)
		}
		delete(want, f.Path)
	}
	if len(want) != 0 || len(l.Roots) != 2 {
		t.Errorf("not listed: %v; roots %+v", want, l.Roots)
	}
}

func TestFindRefusesTheSamePathTwice(t *testing.T) {
	one, two := tree(t), tree(t)
	got := list(t, newSource(t, 1<<20), one, two)
	if len(got) != 2 || got[0] != "root/keep.txt" || !strings.Contains(got[1], "another root") {
		t.Errorf("got %q", got)
	}
	link := filepath.Join(t.TempDir(), "root")
	if err := os.Symlink(one, link); err != nil {
		t.Fatal(err)
	}
	roots := []string{one, filepath.Join(one, "keep.txt"), link} // one file by three ways
	if got := list(t, newSource(t, 1<<20), roots...); len(got) != 1 || got[0] != "root/keep.txt" {
		t.Errorf("got %q", got)
	}
}

func TestFindStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newSource(t, 1<<20).Find(ctx, []string{tree(t)}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestLoadBoundsAndChecksAgain(t *testing.T) {
	root := tree(t)
	s := newSource(t, 100)
	l, err := s.Find(t.Context(), []string{root})
	if err != nil {
		t.Fatal(err)
	}
	f := l.Files[0]
	raw, err := s.Load(t.Context(), f)
	if err != nil || string(raw.Bytes) != "Text of keep.txt" || len(raw.Hash) != 64 {
		t.Fatalf("%q, %v", raw.Bytes, err)
	}
	if err := os.Truncate(f.Name, 101); err != nil { // grew since the walk
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context(), f); !errors.Is(err, ingest.ErrTooLarge) {
		t.Errorf("grown file: %v", err)
	}
	if err := os.Remove(f.Name); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context(), f); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("removed file: %v", err)
	}
	if err := syscall.Mkfifo(f.Name, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Load(t.Context(), f); !errors.Is(err, ingest.ErrNotRegular) {
		t.Errorf("a pipe instead: %v", err)
	}
	secret := filepath.Join(t.TempDir(), "secret.txt")
	if err := errors.Join(os.WriteFile(secret, []byte("outside"), 0o644), os.Remove(f.Name), os.Symlink(secret, f.Name)); err != nil {
		t.Fatal(err)
	}
	if raw, err := s.Load(t.Context(), f); !errors.Is(err, ingest.ErrNotRegular) {
		t.Errorf("a link instead: %q, %v", raw.Bytes, err)
	}
}

// TestLoadFollowsARoot: a root is followed where it is a link, to a file as to a folder.
func TestLoadFollowsARoot(t *testing.T) {
	link := filepath.Join(t.TempDir(), "named.txt")
	if err := os.Symlink(filepath.Join(tree(t), "keep.txt"), link); err != nil {
		t.Fatal(err)
	}
	s := newSource(t, 100)
	l, err := s.Find(t.Context(), []string{link})
	if err != nil || len(l.Files) != 1 || filepath.Base(l.Files[0].Path) != "named.txt" {
		t.Fatalf("%+v, %v", l.Files, err)
	}
	if raw, err := s.Load(t.Context(), l.Files[0]); err != nil || string(raw.Bytes) != "Text of keep.txt" {
		t.Errorf("%q, %v", raw.Bytes, err)
	}
}

func TestNewChecksTheBound(t *testing.T) {
	if _, err := source.New(source.Config{}); err == nil {
		t.Error("a bound of 0 bytes was accepted")
	}
}
