package localpg

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// acquireLock takes the folder's lock for the life of the process or until the
// file is closed. The kernel drops it when the holder dies, so it never goes
// stale. The file holds the pid for the error that the second comer gets.
func acquireLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the database folder: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		defer f.Close()
		return nil, fmt.Errorf("%w: process %s holds %s; stop it or choose another data folder ($RAGD_HOME)", ErrInUse, holder(f), path)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock the database folder %s: %w", path, err)
	}
	if err := writePID(f); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock the database folder %s: %w", path, err)
	}
	return f, nil
}

func writePID(f *os.File) error {
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err := f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	return err
}

// holder reads the pid that the lock's owner wrote.
func holder(f *os.File) string {
	b, err := io.ReadAll(io.LimitReader(f, 32))
	if pid := strings.TrimSpace(string(b)); err == nil && pid != "" {
		return pid
	}
	return "unknown"
}
