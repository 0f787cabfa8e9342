package modelstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"ragd/inference/gguf"
	"ragd/inference/quant"
)

// hubServer is a hub that keeps one file and redirects to its storage, which
// is another host.
type hubServer struct {
	*httptest.Server
	mu      sync.Mutex
	body    []byte
	sum     string // told in X-Linked-Etag
	status  int    // answer of every request, if not 0
	etag    string // part of the storage's validator
	cut     int    // the next answer ends after so many bytes, if not 0
	hangs   bool   // and its connection stays open
	ranges  bool   // whether ranges are served
	gets    []string
	leaked  string // Authorization header that reached the storage
	granted string // Authorization header that reached the hub
}

const hubFile = "hf:acme/tiny/sub/model.gguf"

func newHub(t *testing.T) *hubServer {
	t.Helper()
	var out bytes.Buffer
	w := gguf.NewWriter(&out)
	if err := errors.Join(w.Add("t", []uint64{1 << 14}, quant.F32, bytes.Repeat([]byte("abcd"), 1<<14)), w.Finish()); err != nil {
		t.Fatal(err)
	}
	h := &hubServer{body: out.Bytes(), sum: sum(out.Bytes()), ranges: true}
	h.Server = httptest.NewServer(http.HandlerFunc(h.serve))
	t.Cleanup(h.Close)
	return h
}

func (h *hubServer) serve(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.status != 0:
		w.WriteHeader(h.status)
	case strings.HasPrefix(r.URL.Path, "/storage"):
		h.leaked += r.Header.Get("Authorization")
		h.storage(w, r)
	case r.URL.Path == "/acme/tiny/resolve/main/sub/model.gguf":
		h.granted = r.Header.Get("Authorization")
		w.Header().Set("X-Linked-Etag", `"`+h.sum+`"`)
		w.Header().Set("X-Linked-Size", fmt.Sprint(len(h.body)))
		http.Redirect(w, r, strings.Replace(h.URL, "127.0.0.1", "localhost", 1)+"/storage?signature=secret", http.StatusFound)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (h *hubServer) storage(w http.ResponseWriter, r *http.Request) {
	h.gets = append(h.gets, r.Header.Get("Range"))
	w.Header().Set("ETag", `"`+h.etag+sum(h.body)[:8]+`"`)
	if !h.ranges {
		r.Header.Del("Range")
	}
	if h.cut > 0 {
		cut := h.cut
		h.cut = 0
		w = &cutWriter{w, cut, nil}
		if h.hangs {
			w.(*cutWriter).hang = r.Context().Done()
		}
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(h.body))
}

// cutWriter breaks the connection after some bytes.
type cutWriter struct {
	http.ResponseWriter
	left int
	hang <-chan struct{} // until when the connection is kept open
}

func (c *cutWriter) Write(p []byte) (int, error) {
	n := min(len(p), c.left)
	c.left -= n
	if _, err := c.ResponseWriter.Write(p[:n]); err != nil {
		return 0, err
	}
	if n < len(p) {
		c.ResponseWriter.(http.Flusher).Flush()
		if c.hang != nil {
			<-c.hang
		}
		panic(http.ErrAbortHandler)
	}
	return n, nil
}

func hubStore(t *testing.T, h *hubServer) *Store {
	t.Helper()
	t.Setenv("HF_ENDPOINT", h.URL+"/")
	t.Setenv("HF_TOKEN", "hf_secret")
	s := Open(filepath.Join(t.TempDir(), "home"))
	s.hub.pause = time.Millisecond
	return s
}

func TestHubDownload(t *testing.T) {
	h := newHub(t)
	s := hubStore(t, h)
	var last, total int64
	for range 2 {
		path, err := s.Ensure(t.Context(), hubFile, func(done, all int64, _ string) { last, total = done, all })
		if err != nil {
			t.Fatal(err)
		}
		if want := filepath.Join(s.home, "models", "hf", "acme", "tiny", "main", "sub", "model.gguf"); path != want {
			t.Errorf("path is %s, want %s", path, want)
		}
		if read(t, path) != string(h.body) {
			t.Error("the file differs")
		}
	}
	if len(h.gets) != 1 || last != total || total != int64(len(h.body)) {
		t.Errorf("%d downloads, progress %d of %d", len(h.gets), last, total)
	}
	if h.granted != "Bearer hf_secret" || h.leaked != "" {
		t.Errorf("the hub saw %q, the storage %q", h.granted, h.leaked)
	}
	if left := files(t, s.home); len(left) != 1 {
		t.Errorf("files are %v", left)
	}
	list, err := s.List()
	if err != nil || len(list) != 1 || list[0].Name != hubFile {
		t.Errorf("list is %+v, %v", list, err)
	}
	for name, want := range map[string]bool{hubFile: true, hubFile + "@main": true, hubFile + "@v2": false, "hf:": false, "no-such": false, "all-minilm-l6-v2": false} {
		if path, ok := s.Find(name); ok != want || ok && path != list[0].Path {
			t.Errorf("%s is found at %q, %v", name, path, ok)
		}
	}
}

func TestLostConnectionIsTakenUpAgain(t *testing.T) {
	h := newHub(t)
	h.cut = 5000
	s := hubStore(t, h)
	path, err := s.Ensure(t.Context(), hubFile, nil)
	if err != nil {
		t.Fatal(err)
	}
	if read(t, path) != string(h.body) || len(h.gets) != 2 || !strings.HasPrefix(h.gets[1], "bytes=") {
		t.Errorf("ranges asked for are %q", h.gets)
	}
}

// A connection that says nothing any more is given up like one that is lost.
func TestStalledDownloadIsTakenUpAgain(t *testing.T) {
	h := newHub(t)
	h.cut, h.hangs = 5000, true
	s := hubStore(t, h)
	s.hub.stall = 300 * time.Millisecond
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	path, err := s.Ensure(ctx, hubFile, nil)
	if err != nil {
		t.Fatal(err)
	}
	// On a busy machine a connection that lives may pass for one that hangs.
	if read(t, path) != string(h.body) || len(h.gets) < 2 || !strings.HasPrefix(h.gets[1], "bytes=") {
		t.Errorf("ranges asked for are %q", h.gets)
	}
}

// A file under two names is fetched by one caller at a time.
func TestOneFileOfTwoNames(t *testing.T) {
	h := newHub(t)
	s := hubStore(t, h)
	var once sync.Once
	var group sync.WaitGroup
	stages := make(chan string, 1)
	second := func() {
		_, err := s.Ensure(t.Context(), hubFile+"@main", func(_, _ int64, stage string) {
			select {
			case stages <- stage:
			default:
			}
		})
		if err != nil {
			t.Error(err)
		}
	}
	_, err := s.Ensure(t.Context(), hubFile, func(int64, int64, string) {
		once.Do(func() {
			group.Go(second)
			if stage := <-stages; !strings.HasPrefix(stage, "waiting") {
				t.Errorf("the other name begins with %q", stage)
			}
		})
	})
	group.Wait()
	if err != nil || len(h.gets) != 1 {
		t.Errorf("%d downloads, %v", len(h.gets), err)
	}
}

// interrupt leaves the first bytes of a download behind, as Ctrl-C does.
func interrupt(t *testing.T, s *Store) (partialFile string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	stop := func(done, _ int64, _ string) {
		if done > 0 {
			cancel()
		}
	}
	if _, err := s.Ensure(ctx, hubFile, stop); !errors.Is(err, context.Canceled) {
		t.Fatalf("interrupted: %v", err)
	}
	ref, err := parseReference(hubFile)
	if err != nil {
		t.Fatal(err)
	}
	path := ref.path(s.home)
	if _, err := os.Stat(path); err == nil {
		t.Error("half a file is in place")
	}
	info, err := os.Stat(path + ".partial")
	if err != nil || info.Size() == 0 {
		t.Fatalf("nothing is kept: %v", err)
	}
	return path + ".partial"
}

func TestInterruptedDownloadGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		change    func(*testing.T, *hubServer, string)
		wantRange bool
	}{
		"as it was":        {func(*testing.T, *hubServer, string) {}, true},
		"other validator":  {func(_ *testing.T, h *hubServer, _ string) { h.etag = "v2-" }, true},
		"no ranges served": {func(_ *testing.T, h *hubServer, _ string) { h.ranges = false }, true},
		"file changed": {func(_ *testing.T, h *hubServer, _ string) {
			h.body = append([]byte(nil), h.body...)
			h.body[len(h.body)-1] = 'X'
			h.sum = sum(h.body)
		}, false},
		"file grew": {func(_ *testing.T, h *hubServer, _ string) {
			h.body = append(h.body[:len(h.body):len(h.body)], 'X')
			h.sum = sum(h.body)
		}, false},
		"note lost": {func(t *testing.T, _ *hubServer, partialFile string) {
			if err := os.Remove(partialFile + ".json"); err != nil {
				t.Fatal(err)
			}
		}, false},
		"whole but not in place": {func(t *testing.T, h *hubServer, partialFile string) {
			if err := os.WriteFile(partialFile, h.body, 0o600); err != nil {
				t.Fatal(err)
			}
		}, false},
		"longer than the file": {func(t *testing.T, h *hubServer, partialFile string) {
			if err := os.WriteFile(partialFile, append(h.body[:len(h.body):len(h.body)], 1, 2, 3), 0o600); err != nil {
				t.Fatal(err)
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			s := hubStore(t, h)
			partialFile := interrupt(t, s)
			h.mu.Lock()
			h.gets = nil
			c.change(t, h, partialFile)
			h.mu.Unlock()
			path, err := s.Ensure(t.Context(), hubFile, nil)
			if err != nil {
				t.Fatal(err)
			}
			if read(t, path) != string(h.body) {
				t.Error("the file differs")
			}
			if got := strings.Contains(strings.Join(h.gets, ""), "bytes="); got != c.wantRange {
				t.Errorf("ranges asked for are %q", h.gets)
			}
		})
	}
}

func TestHubRefusals(t *testing.T) {
	var wrong *ChecksumError
	var format *gguf.FormatError
	for name, c := range map[string]struct {
		spoil func(*hubServer)
		is    func(error) bool
		says  string
	}{
		"wrong checksum": {func(h *hubServer) { h.sum = strings.Repeat("0", 64) }, func(err error) bool { return errors.As(err, &wrong) }, "0000"},
		"404":            {func(h *hubServer) { h.status = 404 }, func(err error) bool { return errors.Is(err, ErrNotFound) }, hubFile},
		"401":            {func(h *hubServer) { h.status = 401 }, func(err error) bool { return errors.Is(err, ErrUnauthorized) }, "HF_TOKEN"},
		"403":            {func(h *hubServer) { h.status = 403 }, func(err error) bool { return errors.Is(err, ErrUnauthorized) }, "403"},
		"503":            {func(h *hubServer) { h.status = 503 }, func(err error) bool { return err != nil }, "503"},
		"no model":       {func(h *hubServer) { h.body = []byte("<html>sorry</html>"); h.sum = sum(h.body) }, func(err error) bool { return errors.As(err, &format) }, "not a GGUF file"},
		"gone":           {func(h *hubServer) { h.CloseClientConnections(); h.Config.Handler = nil; h.Close() }, func(err error) bool { return err != nil }, "from the hub"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			s := hubStore(t, h)
			c.spoil(h)
			_, err := s.Ensure(t.Context(), hubFile, nil)
			if !c.is(err) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v does not say %q", err, c.says)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("error %q gives a secret away", err)
			}
			if left := files(t, filepath.Dir(s.home)); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// fullDisk fails like a file system without room.
type fullDisk struct{ partial }

func (f fullDisk) Write(p []byte) (int, error) {
	n, err := f.partial.Write(p[:min(len(p), 100)])
	if err == nil {
		err = &os.PathError{Op: "write", Path: "model", Err: syscall.ENOSPC}
	}
	return n, err
}

func TestHubFullDisk(t *testing.T) {
	h := newHub(t)
	s := hubStore(t, h)
	s.hub.create = func(path string) (partial, error) {
		f, err := openPartial(path)
		return fullDisk{f}, err
	}
	_, err := s.Ensure(t.Context(), hubFile, nil)
	if !errors.Is(err, ErrNoSpace) || !strings.Contains(err.Error(), s.home) {
		t.Errorf("error is %v", err)
	}
	if len(h.gets) != 1 {
		t.Errorf("a full disk was tried %d times", len(h.gets))
	}
	s.hub.create = openPartial
	if path, err := s.Ensure(t.Context(), hubFile, nil); err != nil || read(t, path) != string(h.body) {
		t.Errorf("with room again: %v", err)
	}
	s.free = func(string) (int64, error) { return 10, nil }
	if _, err := s.Ensure(t.Context(), hubFile+"@main", nil); err != nil {
		t.Errorf("a file that is there asks for room: %v", err)
	}
	if err := os.RemoveAll(filepath.Join(s.home, "models")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Ensure(t.Context(), hubFile, nil); !errors.Is(err, ErrNoSpace) {
		t.Errorf("with 10 bytes free: %v", err)
	}
}

func TestParseReference(t *testing.T) {
	good := map[string]reference{
		"hf:a/b/c.gguf":               {"a", "b", "c.gguf", "main"},
		"hf:A-1/b_2.x/d/e-Q4.gguf@v1": {"A-1", "b_2.x", "d/e-Q4.gguf", "v1"},
		"hf:a/b/c.gguf@refs/pr/1":     {"a", "b", "c.gguf", "refs/pr/1"},
	}
	for name, want := range good {
		got, err := parseReference(name)
		if err != nil || got != want || got.name() != name {
			t.Errorf("%s is %+v (%s), %v", name, got, got.name(), err)
		}
	}
	for _, name := range []string{
		"hf:", "hf:a/b", "hf:a/b/c.bin", "hf:../b/c.gguf", "hf:a/../c.gguf", "hf:a/b/../../c.gguf",
		"hf:a/b/./c.gguf", "hf:a/b/c.gguf@", "hf:a/b/c.gguf@../x", "hf:a/b/c d.gguf", "hf:a/b//c.gguf", "hf:a/b/c.gguf?x=1", "hf:a b/c/d.gguf",
	} {
		if _, err := parseReference(name); !errors.Is(err, ErrName) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Whatever the name, the file stays below the model folder.
func FuzzParseReference(f *testing.F) {
	f.Add("hf:a/b/c.gguf@v1")
	f.Add("hf:a/b/../c.gguf")
	f.Add("hf:a/b//c.gguf@a%2fb")
	f.Fuzz(func(t *testing.T, name string) {
		ref, err := parseReference(name)
		if err != nil {
			return
		}
		rel, err := filepath.Rel("/home/models/hf", ref.path("/home"))
		if err != nil || !filepath.IsLocal(rel) || strings.Count(rel, "/") < 3 {
			t.Fatalf("%q lies at %s, %v", name, rel, err)
		}
	})
}
