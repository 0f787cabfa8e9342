package modelstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"ragd/inference/gguf"
)

const (
	hubPrefix = "hf:"
	hubPause  = 200 * time.Millisecond
	// hubStall is how long a body may bring nothing.
	hubStall = time.Minute
)

var (
	// ErrName says that a hub name is not OWNER/REPO/FILE.gguf[@REVISION].
	ErrName = errors.New("malformed hub name")
	// ErrNotFound says that the hub has no such repository, revision or file.
	ErrNotFound = errors.New("not found on the hub")
	// ErrUnauthorized says that the hub asks for a token or refuses the one given.
	ErrUnauthorized = errors.New("the hub refuses access; accept the model's terms there and set HF_TOKEN")
)

// hub is a Hugging Face hub or a mirror of it.
type hub struct {
	endpoint, token string
	client          *http.Client
	// pause is the wait before a lost connection is taken up again.
	pause time.Duration
	// stall is after how long without a byte a connection counts as lost.
	stall time.Duration
	// create opens the file that a download goes to, for appending.
	create func(path string) (partial, error)
}

// hubTransport bounds every wait but that for the body, which is bounded from one byte
// to the next: its length varies from kilobytes to many gigabytes.
func hubTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.ResponseHeaderTimeout = 60 * time.Second
	return t
}

// reference is a file on the hub.
type reference struct{ owner, repo, file, revision string }

var hubName = regexp.MustCompile(`^hf:([\w.-]+)/([\w.-]+)/([\w./-]+\.gguf)(?:@([\w./-]+))?$`)

func parseReference(name string) (reference, error) {
	m := hubName.FindStringSubmatch(name)
	if m == nil {
		return reference{}, fmt.Errorf("%w: want %sOWNER/REPO/FILE.gguf[@REVISION]", ErrName, hubPrefix)
	}
	ref := reference{owner: m[1], repo: m[2], file: m[3], revision: m[4]}
	if ref.revision == "" {
		ref.revision = "main"
	}
	whole := strings.Join([]string{ref.owner, ref.repo, ref.file, ref.revision}, "/")
	for part := range strings.SplitSeq(whole, "/") {
		if part == "" || part == "." || part == ".." {
			return reference{}, fmt.Errorf("%w: %q is no part of a path", ErrName, part)
		}
	}
	return ref, nil
}

// path is the place of the file below the data folder. The revision is one
// folder, with its slashes escaped.
func (r reference) path(home string) string {
	return filepath.Join(home, "models", "hf", r.owner, r.repo, url.PathEscape(r.revision), filepath.FromSlash(r.file))
}

func (r reference) name() string {
	name := hubPrefix + r.owner + "/" + r.repo + "/" + r.file
	if r.revision == "main" {
		return name
	}
	return name + "@" + r.revision
}

func (h hub) url(r reference) string {
	return fmt.Sprintf("%s/%s/%s/resolve/%s/%s", h.endpoint, r.owner, r.repo, url.PathEscape(r.revision), r.file)
}

func (s *Store) ensureHub(ctx context.Context, name string, progress Progress) (string, error) {
	ref, err := parseReference(name)
	if err != nil {
		return "", err
	}
	path := ref.path(s.home)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	// Not the name as it was given: one file has several.
	unlock, err := s.lock(ctx, ref.name(), progress)
	if err != nil {
		return "", err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return "", err
	}
	entry, err := s.hub.head(ctx, ref)
	if err != nil {
		return "", err
	}
	d := &download{hub: s.hub, ref: ref, entry: entry, partial: path + ".partial", progress: progress}
	if err := s.checkFree(entry.size - d.have()); err != nil {
		return "", err
	}
	if err := d.run(ctx); err != nil {
		return "", s.explain(err, entry.size)
	}
	if err := checkGGUF(d.partial); err != nil {
		return "", errors.Join(err, d.remove())
	}
	return path, errors.Join(os.Rename(d.partial, path), d.forget())
}

// checkGGUF keeps a file that is no usable model from being put in place.
func checkGGUF(path string) error {
	f, err := gguf.Open(path)
	if err != nil {
		return err
	}
	return f.Close()
}

// hubEntry is what the hub says of a file.
type hubEntry struct {
	size   int64  // 0 when not told
	sha256 string // empty when the hub keeps no checksum of the file
}

// head asks for a file's size and checksum. The hub itself tells them, in
// X-Linked-Size and X-Linked-Etag; the storage it redirects to does not.
func (h hub) head(ctx context.Context, ref reference) (hubEntry, error) {
	resp, err := h.do(ctx, http.MethodHead, ref, nil, func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse })
	if err != nil {
		return hubEntry{}, err
	}
	defer func() { _ = resp.Body.Close() }() // a HEAD answer has no body
	if resp.StatusCode >= http.StatusBadRequest {
		return hubEntry{}, statusError(resp.StatusCode)
	}
	entry := hubEntry{}
	size := resp.Header.Get("X-Linked-Size")
	if size == "" && resp.StatusCode == http.StatusOK {
		size = resp.Header.Get("Content-Length")
	}
	if size != "" {
		if entry.size, err = strconv.ParseInt(size, 10, 64); err != nil || entry.size < 0 {
			return hubEntry{}, fmt.Errorf("the hub gives a malformed size %q", size)
		}
	}
	if sum := strings.Trim(resp.Header.Get("X-Linked-Etag"), `"`); isSHA256(sum) {
		entry.sha256 = sum
	}
	return entry, nil
}

func isSHA256(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// do sends one request. Errors do not carry the address: after a redirect it
// holds a signature that is as good as a password.
func (h hub) do(ctx context.Context, method string, ref reference, header http.Header, redirect func(*http.Request, []*http.Request) error) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, h.url(ref), nil)
	if err != nil {
		return nil, fmt.Errorf("HF_ENDPOINT: %w", err)
	}
	for k, v := range header {
		req.Header[k] = v
	}
	// A compressed body would change what ranges and lengths mean.
	req.Header.Set("Accept-Encoding", "identity")
	if h.token != "" {
		req.Header.Set("Authorization", "Bearer "+h.token)
	}
	client := *h.client
	client.CheckRedirect = redirect
	resp, err := client.Do(req)
	var withURL *url.Error
	if errors.As(err, &withURL) {
		return nil, fmt.Errorf("%s from the hub: %w", strings.ToLower(method), withURL.Err)
	}
	return resp, err
}

func statusError(status int) error {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("%w (status %d)", ErrUnauthorized, status)
	case http.StatusNotFound:
		return ErrNotFound
	}
	return fmt.Errorf("the hub answers with status %d", status)
}

// listHub finds the pulled files.
func (s *Store) listHub() ([]Installed, error) {
	root := filepath.Join(s.home, "models", "hf")
	var list []Installed
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".gguf" {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		const parts = 4 // owner, repository, revision, file
		p := strings.SplitN(filepath.ToSlash(rel), "/", parts)
		if len(p) < parts {
			return nil
		}
		revision, err := url.PathUnescape(p[2])
		if err != nil {
			return nil //nolint:nilerr // not a folder that ragd made
		}
		list = append(list, Installed{reference{p[0], p[1], p[3], revision}.name(), path, info.Size()})
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return list, err
}
