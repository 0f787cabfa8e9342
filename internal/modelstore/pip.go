package modelstore

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

const pipHint = "apt-get install python3-pip"

// pipDownload puts one wheel into dir. pip's own configuration decides where
// it comes from; the tags choose the same file whatever Python runs pip.
func pipDownload(ctx context.Context, w wheel, dir string) error {
	python, err := exec.LookPath("python3")
	if err != nil {
		return fmt.Errorf("%w (%s): %w", ErrNoPip, pipHint, err)
	}
	cmd := exec.CommandContext(ctx, python, pipArgs(w, dir)...)
	// pip unpacks and downloads below TMPDIR: there the size can be watched and
	// what an interrupted pip leaves is removed with dir.
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	var output tail
	cmd.Stdout, cmd.Stderr = &output, &output
	// pip in a process group of its own, which is killed as a whole.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		return pipError(ctx, w, err, output.String())
	}
	return nil
}

func pipArgs(w wheel, dir string) []string {
	args := []string{
		"-m", "pip", "download", "--quiet", "--no-input", "--disable-pip-version-check", "--progress-bar", "off",
		"--no-deps", "--only-binary", ":all:",
		"--implementation", "cp", "--python-version", "3.11", "--abi", "cp311", "--abi", "none",
	}
	for _, p := range w.platforms {
		args = append(args, "--platform", p)
	}
	return append(args, "--platform", "any", "-d", dir, w.pkg+"=="+w.version)
}

// pipError finds the cause in what pip printed.
func pipError(ctx context.Context, w wheel, err error, output string) error {
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case strings.Contains(output, "No module named pip"):
		return fmt.Errorf("%w (%s)", ErrNoPip, pipHint)
	case strings.Contains(output, "No space left on device"), strings.Contains(output, "Errno 28"):
		return fmt.Errorf("pip download %s: %w", w.pkg, syscall.ENOSPC)
	}
	return fmt.Errorf("pip download %s==%s: %w: %s", w.pkg, w.version, err, strings.TrimSpace(output))
}

// tail keeps the end of what is written to it.
type tail struct{ buf bytes.Buffer }

func (t *tail) Write(p []byte) (int, error) {
	const limit = 2000
	t.buf.Write(p)
	if extra := t.buf.Len() - limit; extra > 0 {
		t.buf.Next(extra)
	}
	return len(p), nil
}

func (t *tail) String() string { return t.buf.String() }

// watch reports the size of a folder until stop is called.
func watch(dir string, total int64, stage string, progress Progress) (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		const pause = 200 * time.Millisecond
		tick := time.NewTicker(pause)
		defer tick.Stop()
		for {
			if size, err := treeSize(dir); err == nil {
				progress(min(size, total), total, stage)
			}
			select {
			case <-done:
				return
			case <-tick.C:
			}
		}
	})
	return func() { close(done); running.Wait() }
}

// lock takes the lock file of an item, waiting for its holder, and returns
// what releases it.
func (s *Store) lock(ctx context.Context, name string, progress Progress) (unlock func(), err error) {
	cache := filepath.Join(s.home, "cache")
	if err := makeFolder(cache); err != nil {
		return nil, err
	}
	path := filepath.Join(cache, strings.ReplaceAll(name, "/", "_")+".lock")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	const pause = 100 * time.Millisecond
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return func() { _ = f.Close() }, nil // closing releases the lock
		case !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR):
			return nil, errors.Join(fmt.Errorf("lock %s: %w", path, err), f.Close())
		}
		progress(0, 0, "waiting for another download")
		select {
		case <-ctx.Done():
			return nil, errors.Join(context.Cause(ctx), f.Close())
		case <-tick.C:
		}
	}
}
