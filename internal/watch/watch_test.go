package watch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// patience is far more than a notice takes on a machine that does much else.
const patience = 20 * time.Second

// watched runs a watch and returns the calls of changed.
func watched(t *testing.T, cfg Config, paths ...string) <-chan time.Time {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	calls, end := make(chan time.Time, 100), make(chan error, 1)
	go func() {
		end <- Run(ctx, paths, cfg, func(context.Context) error { calls <- time.Now(); return nil })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-end; !errors.Is(err, context.Canceled) {
			t.Errorf("ended with %v", err)
		}
	})
	told(t, calls, "the beginning")
	return calls
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func told(t *testing.T, calls <-chan time.Time, what string) {
	t.Helper()
	select {
	case <-calls:
	case <-time.After(patience):
		t.Fatalf("%s was not told", what)
	}
}

func TestChangesAreTold(t *testing.T) {
	for name, cfg := range map[string]Config{
		"notices":          {Quiet: 30 * time.Millisecond},
		"polling":          {Poll: 30 * time.Millisecond, NoNotices: true},
		"too many folders": {Poll: 30 * time.Millisecond, Folders: 1},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			write(t, filepath.Join(root, "old", "a.md"), "one")
			calls := watched(t, cfg, root)
			steps := []struct {
				what string
				do   func()
			}{
				{"a file", func() { write(t, filepath.Join(root, "old", "a.md"), "two, longer") }},
				{"a new folder with a file", func() { write(t, filepath.Join(root, "new", "deep", "한국어.md"), "x") }},
				{"a file in the new folder", func() { write(t, filepath.Join(root, "new", "deep", "c.md"), "x") }},
				{"a removal", func() { os.Remove(filepath.Join(root, "old", "a.md")) }},
				{"a rename", func() { os.Rename(filepath.Join(root, "new"), filepath.Join(root, "newer")) }},
			}
			for _, s := range steps {
				s.do()
				told(t, calls, s.what)
				for settled := false; !settled; { // a change may be told in two parts
					select {
					case <-calls:
					case <-time.After(300 * time.Millisecond):
						settled = true
					}
				}
			}
		})
	}
}

// Of a file only that file's changes count.
func TestAFileAlone(t *testing.T) {
	root := t.TempDir()
	mine := filepath.Join(root, "mine.md")
	write(t, mine, "one")
	calls := watched(t, Config{Quiet: 30 * time.Millisecond}, mine)
	write(t, filepath.Join(root, "other.md"), "x")
	select {
	case <-calls:
		t.Fatal("another file's change was told")
	case <-time.After(300 * time.Millisecond):
	}
	write(t, mine, "two")
	told(t, calls, "the file's change")
}

// Many changes make few calls, and a stream of them does not put it off for ever.
func TestChangesAreGathered(t *testing.T) {
	root := t.TempDir()
	calls := watched(t, Config{Quiet: 300 * time.Millisecond, Most: 900 * time.Millisecond}, root)
	for began := time.Now(); time.Since(began) < 2*time.Second; time.Sleep(20 * time.Millisecond) {
		write(t, filepath.Join(root, "a.md"), time.Now().String())
	}
	told(t, calls, "a stream of changes")
	time.Sleep(time.Second)
	if n := 1 + len(calls); n > 5 {
		t.Errorf("%d calls for one stream of changes", n)
	}
}

func TestTheErrorOfChangedEndsIt(t *testing.T) {
	root, gone := t.TempDir(), errors.New("no database")
	for name, cfg := range map[string]Config{"notices": {Quiet: time.Millisecond}, "polling": {Poll: time.Millisecond, NoNotices: true}} {
		end := make(chan error, 1)
		go func() {
			first := true
			end <- Run(t.Context(), []string{root}, cfg, func(context.Context) error {
				if first {
					first = false
					return nil
				}
				return gone
			})
		}()
		for i := 0; ; i++ {
			write(t, filepath.Join(root, "a.md"), name+time.Now().String())
			select {
			case err := <-end:
				if !errors.Is(err, gone) {
					t.Errorf("%s: %v", name, err)
				}
			case <-time.After(50 * time.Millisecond):
				if i < 200 {
					continue
				}
				t.Errorf("%s: it goes on", name)
			}
			break
		}
	}
}
