package modelstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// install fetches the wheels of a recipe and builds its target beside its
// place, so that the last step is a rename.
func (s *Store) install(ctx context.Context, r *recipe, progress Progress) error {
	if err := s.checkSpace(r); err != nil {
		return err
	}
	var wheels []string
	for _, w := range r.wheels {
		path, err := s.wheel(ctx, w, progress)
		if err != nil {
			return err
		}
		wheels = append(wheels, path)
	}
	place := r.place(s.home)
	work, err := workFolder(filepath.Dir(place), ".unpack-"+r.Name)
	if err != nil {
		return err
	}
	built := filepath.Join(work, filepath.Base(place))
	err = r.build(ctx, wheels, built, progress)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil {
		err = replace(built, place)
	}
	return errors.Join(err, os.RemoveAll(work))
}

// replace moves built to place; what stands there is an older or damaged copy.
func replace(built, place string) error {
	if err := os.RemoveAll(place); err != nil {
		return err
	}
	return os.Rename(built, place)
}

// wheel returns the path of a verified wheel in the cache, fetching it when it
// is not there or damaged.
func (s *Store) wheel(ctx context.Context, w wheel, progress Progress) (string, error) {
	cache := filepath.Join(s.home, "cache")
	path := filepath.Join(cache, w.file())
	err := verifyFile(ctx, path, w.sha256, progress)
	var damaged *ChecksumError
	if err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &damaged) {
		return path, err
	}
	work, err := workFolder(cache, ".download-"+w.pkg)
	if err != nil {
		return "", err
	}
	return path, errors.Join(s.fetchWheel(ctx, w, work, path, progress), os.RemoveAll(work))
}

func (s *Store) fetchWheel(ctx context.Context, w wheel, work, path string, progress Progress) error {
	stop := watch(work, w.size, "downloading "+w.pkg, progress)
	err := s.fetch(ctx, w, work)
	stop()
	if err != nil {
		return err
	}
	found, err := filepath.Glob(filepath.Join(work, "*.whl"))
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return fmt.Errorf("downloading %s %s gave %d wheels, not one", w.pkg, w.version, len(found))
	}
	if err := verifyFile(ctx, found[0], w.sha256, progress); err != nil {
		return err
	}
	return os.Rename(found[0], path)
}

// verifyFile compares the sha256 of a file and removes the file when it is
// another one, with a *ChecksumError.
func verifyFile(ctx context.Context, path, want string, progress Progress) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	hash := sha256.New()
	in := &meter{ctx: ctx, in: f, total: info.Size(), stage: "verifying " + filepath.Base(path), progress: progress}
	_, err = io.Copy(hash, in)
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != want {
		return errors.Join(&ChecksumError{File: filepath.Base(path), Want: want, Got: got}, os.Remove(path))
	}
	return nil
}

// meter is a reader that reports progress and ends with its context.
type meter struct {
	ctx         context.Context
	in          io.Reader
	done, total int64
	stage       string
	progress    Progress
}

func (m *meter) Read(p []byte) (int, error) {
	if err := m.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := m.in.Read(p)
	m.done += int64(n)
	m.progress(m.done, m.total, m.stage)
	return n, err
}

// workFolder makes a fresh folder parent/prefix-RANDOM and removes those that
// an interrupted run has left. The caller holds the lock of the item, so that
// none of them is in use.
func workFolder(parent, prefix string) (string, error) {
	if err := makeFolder(parent); err != nil {
		return "", err
	}
	entries, err := os.ReadDir(parent)
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), prefix+"-tmp") {
			if err := os.RemoveAll(filepath.Join(parent, e.Name())); err != nil {
				return "", err
			}
		}
	}
	return os.MkdirTemp(parent, prefix+"-tmp")
}

// makeFolder creates a folder with its parents. What it creates can be entered
// by everyone whatever the umask is: root's private PostgreSQL runs as another
// user.
func makeFolder(path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil
	}
	if parent := filepath.Dir(path); parent != path {
		if err := makeFolder(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil // made by another process meanwhile, or a file: the next step tells
		}
		return err
	}
	return os.Chmod(path, 0o755)
}

// checkSpace refuses to start when the target surely will not fit.
func (s *Store) checkSpace(r *recipe) error {
	needs := r.Size
	for _, w := range r.wheels {
		if _, err := os.Stat(filepath.Join(s.home, "cache", w.file())); err != nil {
			needs += w.size
		}
	}
	if err := makeFolder(s.home); err != nil {
		return err
	}
	return s.checkFree(needs)
}

func (s *Store) checkFree(needs int64) error {
	has, err := s.free(s.home)
	if err != nil {
		return fmt.Errorf("ask for free space: %w", err)
	}
	if has < needs {
		return fmt.Errorf("%w under %s: needs %d MiB, has %d MiB", ErrNoSpace, s.home, needs>>20, has>>20)
	}
	return nil
}

// explain adds to a full disk where it is and how much is needed.
func (s *Store) explain(err error, needs int64) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w under %s: needs about %d MiB: %w", ErrNoSpace, s.home, needs>>20, err)
	}
	return err
}

func freeBytes(dir string) (int64, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(dir, &st); err != nil {
		return 0, err
	}
	return int64(st.Bavail) * int64(st.Bsize), nil
}
