package modelstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// python puts a program of that name first on the PATH.
func python(t *testing.T, script string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "python3"), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
}

var anyWheel = wheel{pkg: "some-model", version: "1.2", platforms: []string{"plat_a"}}

func TestPipIsAskedForOneFile(t *testing.T) {
	dir := t.TempDir()
	python(t, `echo "$@" > "`+dir+`/args"; echo "$TMPDIR" > "`+dir+`/tmpdir"`)
	if err := pipDownload(t.Context(), anyWheel, dir); err != nil {
		t.Fatal(err)
	}
	args := strings.TrimSpace(read(t, dir+"/args"))
	for _, want := range []string{
		"-m pip download ", "--no-deps", "--only-binary :all:", "--platform plat_a --platform any",
		"--abi cp311 --abi none", "-d " + dir + " some-model==1.2",
	} {
		if !strings.Contains(args, want) {
			t.Errorf("arguments %q lack %q", args, want)
		}
	}
	if got := strings.TrimSpace(read(t, dir+"/tmpdir")); got != dir {
		t.Errorf("pip's temporary folder is %q", got)
	}
}

func TestPipFailures(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		want   error
		says   string
	}{
		"no pip":     {`echo "python3: No module named pip" >&2; exit 1`, ErrNoPip, pipHint},
		"disk full":  {`echo "ERROR: Could not install: [Errno 28] No space left on device" >&2; exit 1`, syscall.ENOSPC, "some-model"},
		"no release": {`echo "ERROR: No matching distribution found" >&2; exit 1`, nil, "No matching distribution found"},
		"long story": {`i=0; while [ $i -lt 3000 ]; do echo "line $i"; i=$((i+1)); done; exit 1`, nil, "line 2999"},
	} {
		t.Run(name, func(t *testing.T) {
			python(t, c.script)
			err := pipDownload(t.Context(), anyWheel, t.TempDir())
			if err == nil || c.want != nil && !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 3000 {
				t.Errorf("error %v, want %v, %q", err, c.want, c.says)
			}
		})
	}
	t.Setenv("PATH", t.TempDir())
	if err := pipDownload(t.Context(), anyWheel, t.TempDir()); !errors.Is(err, ErrNoPip) || !strings.Contains(err.Error(), pipHint) {
		t.Errorf("without python3: %v", err)
	}
}

// Cancelling ends pip and what it started.
func TestCancelKillsTheProcessGroup(t *testing.T) {
	dir := t.TempDir()
	python(t, `sleep 100 & echo $! > "`+dir+`/child.new"; mv "`+dir+`/child.new" "`+dir+`/child"; wait`)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- pipDownload(ctx, anyWheel, dir) }()
	var child int
	for child == 0 {
		if raw, err := os.ReadFile(dir + "/child"); err == nil {
			if child, err = strconv.Atoi(strings.TrimSpace(string(raw))); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
	deadline := time.Now().Add(5 * time.Second)
	for alive(child) {
		if time.Now().After(deadline) {
			t.Fatalf("process %d outlives pip", child)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// alive reports whether a process runs; one that has ended but was not yet
// collected by its parent does not.
func alive(pid int) bool {
	raw, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return syscall.Kill(pid, 0) == nil
	}
	_, state, _ := strings.Cut(string(raw), ") ")
	return !strings.HasPrefix(state, "Z")
}
