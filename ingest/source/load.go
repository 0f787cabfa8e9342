package source

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"ragd/ingest"
)

// Load reads a listed file. The kind is checked again on the open file, and it
// is opened without blocking and without following a link, so an entry that became a
// pipe since the walk cannot hold the run, and one that became a link leads nowhere. A file that grows past the bound is refused, not cut.
func (s *Source) Load(ctx context.Context, f ingest.File) (ingest.Raw, error) {
	r := ingest.Raw{File: f}
	if f.Err != nil {
		return r, f.Err
	}
	if err := ctx.Err(); err != nil {
		return r, err
	}
	file, err := os.OpenFile(f.Name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, syscall.ELOOP) {
		return r, fmt.Errorf("%w: symbolic link", ingest.ErrNotRegular)
	}
	if err != nil {
		return r, reason(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return r, reason(err)
	}
	if !info.Mode().IsRegular() {
		return r, fmt.Errorf("%w: %s", ingest.ErrNotRegular, modeName(info.Mode()))
	}
	r.Bytes, err = io.ReadAll(io.LimitReader(file, s.config.MaxBytes+1))
	if err != nil {
		return r, reason(err)
	}
	if int64(len(r.Bytes)) > s.config.MaxBytes {
		return r, fmt.Errorf("%w: more than %d bytes", ingest.ErrTooLarge, s.config.MaxBytes)
	}
	sum := sha256.Sum256(r.Bytes)
	r.Hash = hex.EncodeToString(sum[:])
	return r, nil
}
