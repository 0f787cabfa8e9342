// Package watch tells when files change. It listens to the system's notices
// (fsnotify) and looks by itself, at intervals, where there are none to be had: on
// network folders, or where the system's limit of watched folders is reached.
package watch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/fsnotify/fsnotify"
)

// Config says how patient to be; a zero value takes the default.
type Config struct {
	// Quiet is how long nothing must have changed before a change is told (500 ms): a
	// file that is still written is not read yet. Most is how long that may put it off
	// (10 s).
	Quiet, Most time.Duration
	// Poll is the interval of looking where there are no notices (10 s).
	Poll time.Duration
	// Folders is how many are watched at the most; with more, it polls (8192).
	Folders int
	// NoNotices always polls.
	NoNotices bool
	Log       *slog.Logger
}

func (c Config) withDefaults() Config {
	for _, d := range []struct {
		value    *time.Duration
		fallback time.Duration
	}{{&c.Quiet, 500 * time.Millisecond}, {&c.Most, 10 * time.Second}, {&c.Poll, 10 * time.Second}} {
		if *d.value <= 0 {
			*d.value = d.fallback
		}
	}
	if c.Folders <= 0 {
		c.Folders = 8192
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// errTooMany: more folders than are watched.
var errTooMany = errors.New("more folders than are watched")

// Run calls changed once it watches, so that nothing falls between, and again after
// something at or below the paths was written, made, removed or renamed, until ctx ends
// or changed fails; it returns that error, or ctx's. What
// changes while changed runs is told by the next call. Symbolic links are not
// followed.
func Run(ctx context.Context, paths []string, cfg Config, changed func(context.Context) error) error {
	cfg = cfg.withDefaults()
	if !cfg.NoNotices {
		w, err := listen(paths, cfg)
		if err == nil {
			defer w.notices.Close()
			err = w.run(ctx, changed)
		}
		if !errors.Is(err, errNoNotices) {
			return err
		}
		cfg.Log.Info("watching by looking at intervals", "interval", cfg.Poll, "reason", err)
	}
	return poll(ctx, paths, cfg, changed)
}

// errNoNotices: the system does not tell of changes, or not of all.
var errNoNotices = errors.New("no notices of changes")

type watcher struct {
	cfg     Config
	notices *fsnotify.Watcher
	files   []string // paths that are files: their folder is watched for them alone
	roots   []string
}

func listen(paths []string, cfg Config) (*watcher, error) {
	notices, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoNotices, err)
	}
	w := &watcher{cfg: cfg, notices: notices}
	for _, p := range paths {
		if err := w.add(p); err != nil {
			return nil, fmt.Errorf("%w: %w", errNoNotices, errors.Join(err, notices.Close()))
		}
	}
	return w, nil
}

func (w *watcher) add(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	path = filepath.Clean(path)
	if info.IsDir() {
		w.roots = append(w.roots, path)
		return w.tree(path)
	}
	w.files = append(w.files, path)
	return w.notices.Add(filepath.Dir(path))
}

// tree watches a folder and those below. One that vanishes meanwhile is no error.
func (w *watcher) tree(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		case !d.IsDir():
			return nil
		case len(w.notices.WatchList()) >= w.cfg.Folders:
			return fmt.Errorf("%w: %d", errTooMany, w.cfg.Folders)
		}
		if err := w.notices.Add(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

func (w *watcher) run(ctx context.Context, changed func(context.Context) error) error {
	quiet := time.NewTimer(time.Hour)
	quiet.Stop()
	var first time.Time // of the changes that were not told yet
	note := func() {
		now := time.Now()
		if first.IsZero() {
			first = now
		}
		quiet.Reset(min(w.cfg.Quiet, time.Until(first.Add(w.cfg.Most))))
	}
	if err := changed(ctx); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case e, ok := <-w.notices.Events:
			if !ok {
				return errNoNotices
			}
			relevant, err := w.take(e)
			if err != nil {
				return fmt.Errorf("%w: %w", errNoNotices, err)
			}
			if relevant {
				note()
			}
		case err, ok := <-w.notices.Errors:
			if !ok || !errors.Is(err, fsnotify.ErrEventOverflow) {
				return fmt.Errorf("%w: %w", errNoNotices, err)
			}
			note() // some were lost, so something changed
		case <-quiet.C:
			first = time.Time{}
			if err := changed(ctx); err != nil {
				return err
			}
		}
	}
}

// take watches folders that are new, and says whether a notice concerns the paths.
func (w *watcher) take(e fsnotify.Event) (bool, error) {
	if e.Op == fsnotify.Chmod {
		return false, nil
	}
	name := filepath.Clean(e.Name)
	inside := slices.Contains(w.files, name)
	for _, root := range w.roots {
		rel, err := filepath.Rel(root, name)
		inside = inside || err == nil && filepath.IsLocal(rel)
	}
	if inside && e.Has(fsnotify.Create) {
		if info, err := os.Lstat(name); err == nil && info.IsDir() {
			return true, w.tree(name)
		}
	}
	return inside, nil
}
