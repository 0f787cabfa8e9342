package localpg

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

const (
	socketPort = "5432"
	socketName = ".s.PGSQL." + socketPort
	// maxSocketPath is the shortest sun_path of the systems ragd runs on (104
	// bytes on macOS, 108 on Linux), without the final zero byte.
	maxSocketPath = 103
)

// socketFolder makes the folder for the socket: run itself, or, when a socket
// address cannot hold that path, a private one under os.TempDir named by its hash.
func socketFolder(run string, own owner) (string, error) {
	dir := run
	if len(filepath.Join(dir, socketName)) > maxSocketPath {
		sum := sha256.Sum256([]byte(run))
		dir = filepath.Join(os.TempDir(), "ragd-"+hex.EncodeToString(sum[:8]))
	}
	if n := len(filepath.Join(dir, socketName)); n > maxSocketPath {
		return "", fmt.Errorf("socket path of %d bytes is too long (limit %d): set TMPDIR to a shorter folder than %s", n, maxSocketPath, dir)
	}
	if err := own.canReach(filepath.Dir(dir)); err != nil {
		return "", err
	}
	if err := own.mkdir(dir); err != nil {
		return "", fmt.Errorf("socket folder: %w", err)
	}
	return dir, checkPrivate(dir, own)
}

// checkPrivate refuses a folder that someone else put in the place of the
// socket folder: os.TempDir is open to all.
func checkPrivate(dir string, own owner) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("socket folder: %w", err)
	}
	st := info.Sys().(*syscall.Stat_t)
	if !info.IsDir() || int(st.Uid) != own.uid {
		return fmt.Errorf("socket folder %s belongs to another user or is no folder: remove it", dir)
	}
	if info.Mode().Perm() != 0o700 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("socket folder: %w", err)
		}
	}
	return nil
}
