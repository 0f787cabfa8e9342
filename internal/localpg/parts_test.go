package localpg

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stranger is a user that owns none of the test's folders.
var stranger = owner{name: "stranger", uid: 54321, gid: 54321, drop: true}

func TestCanReach(t *testing.T) {
	base, err := os.MkdirTemp("", "reach-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	closed := filepath.Join(base, "closed")
	inside := filepath.Join(closed, "inside")
	if err := os.MkdirAll(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(base, 0o711); err != nil {
		t.Fatal(err)
	}
	if err := stranger.canReach(inside); err != nil {
		t.Errorf("open folders: %v", err)
	}
	if err := os.Chmod(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	err = stranger.canReach(inside)
	if !errors.Is(err, ErrNotTraversable) || !strings.Contains(err.Error(), "chmod o+x "+closed) {
		t.Errorf("%v, want ErrNotTraversable with what to do about %s", err, closed)
	}
	if err := (owner{name: "me", uid: os.Getuid()}).canReach(inside); err != nil {
		t.Errorf("ragd's own user: %v", err)
	}
}

func TestTrim(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	line := strings.Repeat("x", 99) + "\n"
	if err := os.WriteFile(path, bytes.Repeat([]byte(line), 100), 0o600); err != nil {
		t.Fatal(err)
	}
	writer, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	if err := trim(path, 20_000); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != 10_000 {
		t.Fatalf("a log within its bound was changed: %v %v", info.Size(), err)
	}
	if err := trim(path, 1000); err != nil {
		t.Fatal(err)
	}
	if _, err := writer.WriteString("last\n"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Repeat(line, 4) + "last\n"; string(got) != want {
		t.Errorf("kept %d bytes %q…, want %d", len(got), got[:min(len(got), 50)], len(want))
	}
}

func TestReadPostmaster(t *testing.T) {
	for _, tt := range []struct {
		name, text, socket string
		pid                int
		ok                 bool
	}{
		{"running", "4242\n/data\n1700000000\n5432\n/run/ragd\n\n  1 2\nready   \n", "/run/ragd", 4242, true},
		{"just starting", "4242\n/data\n1700000000\n5432\n", "", 4242, true},
		{"empty", "", "", 0, false},
		{"no number", "x\n", "", 0, false},
		{"init", "1\n", "", 0, false},
		{"standalone", "-7\n", "", 0, false},
	} {
		path := filepath.Join(t.TempDir(), "postmaster.pid")
		if err := os.WriteFile(path, []byte(tt.text), 0o600); err != nil {
			t.Fatal(err)
		}
		pid, socket, err := readPostmaster(path)
		if pid != tt.pid || socket != tt.socket || (err == nil) != tt.ok {
			t.Errorf("%s: %d %q %v", tt.name, pid, socket, err)
		}
	}
}

func TestQuoteConf(t *testing.T) {
	for in, want := range map[string]string{"a": `"a"`, `a, b`: `"a, b"`, `a"b`: `"a""b"`} {
		if got := quoteConf(in); got != want {
			t.Errorf("quoteConf(%q) = %s, want %s", in, got, want)
		}
	}
}

// TestForeignSocketFolder: the fallback folder lies where anyone can write.
func TestForeignSocketFolder(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	me := owner{uid: os.Getuid(), gid: os.Getgid()}
	if err := checkPrivate(link, me); err == nil {
		t.Error("a symbolic link was taken for a private folder")
	}
	if err := checkPrivate(dir, stranger); err == nil {
		t.Error("another user's folder was taken for a private one")
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := checkPrivate(dir, me); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mode %v (%v), want 0700", info.Mode(), err)
	}
}
