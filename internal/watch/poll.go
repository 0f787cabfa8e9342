package watch

import (
	"context"
	"encoding/binary"
	"hash/fnv"
	"io/fs"
	"path/filepath"
	"time"
)

// poll looks at names, sizes and times.
func poll(ctx context.Context, paths []string, cfg Config, changed func(context.Context) error) error {
	tick := time.NewTicker(cfg.Poll)
	defer tick.Stop()
	seen := fingerprint(paths)
	if err := changed(ctx); err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		now := fingerprint(paths)
		if now == seen {
			continue
		}
		// Taken before, so that what changes while changed runs is not missed.
		seen = now
		if err := changed(ctx); err != nil {
			return err
		}
	}
}

// fingerprint sums up what lies at and below the paths. What cannot be read counts as
// not there.
func fingerprint(paths []string) uint64 {
	h := fnv.New64a()
	var number [8]byte
	add := func(v int64) {
		binary.LittleEndian.PutUint64(number[:], uint64(v))
		h.Write(number[:])
	}
	for _, root := range paths {
		// The function below never fails, so neither does the walk.
		_ = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil
			}
			info, err := d.Info()
			if err != nil {
				return nil
			}
			h.Write([]byte(path))
			if !d.IsDir() {
				add(info.Size())
				add(info.ModTime().UnixNano())
			}
			add(int64(info.Mode().Type()))
			return nil
		})
	}
	return h.Sum64()
}
