package source

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"sort"
	"strings"

	"ragd/ingest"
)

// errDuplicate is reported for a file whose stored path another root took.
var errDuplicate = errors.New("another root holds a document of the same path")

// Find lists the files under the roots, sorted by stored path. Only a
// cancelled context ends it; what cannot be read is listed with its error.
func (s *Source) Find(ctx context.Context, roots []string) (ingest.Listing, error) {
	var l ingest.Listing
	seen := make(map[string]bool)
	for _, root := range roots {
		abs, err := filepath.Abs(root)
		if err != nil {
			return l, fmt.Errorf("source: %s: %w", root, err)
		}
		if seen[abs] {
			continue
		}
		seen[abs] = true
		if err := s.findRoot(ctx, &l, abs); err != nil {
			return l, err
		}
	}
	sort.SliceStable(l.Files, func(i, j int) bool { return l.Files[i].Path < l.Files[j].Path })
	l.Files = oncePerPath(l.Files)
	return l, nil
}

// oncePerPath drops files that several roots reach, and marks different files
// of the same stored path: only the first can have it.
func oncePerPath(files []ingest.File) []ingest.File {
	out := files[:0]
	for _, f := range files {
		if len(out) == 0 || out[len(out)-1].Path != f.Path {
			out = append(out, f)
			continue
		}
		first := out[len(out)-1].Name
		if resolved(first) == resolved(f.Name) {
			continue
		}
		f.Err = fmt.Errorf("%w: %s", errDuplicate, first)
		out = append(out, f)
	}
	return out
}

func resolved(name string) string {
	if real, err := filepath.EvalSymlinks(name); err == nil {
		return real
	}
	return name
}

func (s *Source) findRoot(ctx context.Context, l *ingest.Listing, abs string) error {
	base := rootName(abs)
	info, err := os.Stat(abs)
	if err != nil {
		l.Files = append(l.Files, ingest.File{Path: storable(base), Name: abs, Err: rootError(err)})
		return ctx.Err()
	}
	real, err := filepath.EvalSymlinks(abs)
	if err != nil {
		l.Files = append(l.Files, ingest.File{Path: storable(base), Name: abs, Err: rootError(err)})
		return ctx.Err()
	}
	if !info.IsDir() {
		f := s.file(path.Join(rootName(filepath.Dir(abs)), base), real, info)
		l.Files = append(l.Files, f)
		l.Roots = append(l.Roots, ingest.Root{Path: f.Path})
		return ctx.Err()
	}
	w := walker{source: s, ctx: ctx, listing: l, dir: real, base: base, root: ingest.Root{Path: storable(base), Folder: true}}
	err = filepath.WalkDir(real, w.visit)
	l.Roots = append(l.Roots, w.root)
	return err
}

// rootName is the last element of a path, "" for the root of the file system.
func rootName(abs string) string {
	if base := filepath.Base(abs); base != string(filepath.Separator) {
		return base
	}
	return ""
}

// walker visits one folder tree.
type walker struct {
	source  *Source
	ctx     context.Context
	listing *ingest.Listing
	dir     string // the tree on disk, links resolved
	base    string // the root's name as it was given
	root    ingest.Root
}

func (w *walker) visit(name string, entry fs.DirEntry, err error) error {
	if ctxErr := w.ctx.Err(); ctxErr != nil {
		return ctxErr
	}
	stored := w.stored(name)
	if err != nil { // a folder that could not be listed
		w.root.Unread = append(w.root.Unread, storable(stored))
		w.listing.Files = append(w.listing.Files, ingest.File{Path: storable(stored), Name: name, Err: reason(err)})
		return nil
	}
	if name != w.dir && strings.HasPrefix(entry.Name(), ".") {
		if entry.IsDir() {
			return fs.SkipDir
		}
		return nil
	}
	if entry.IsDir() {
		return nil
	}
	w.listing.Files = append(w.listing.Files, w.entry(stored, name, entry))
	return nil
}

func (w *walker) entry(stored, name string, entry fs.DirEntry) ingest.File {
	f := ingest.File{Path: storable(stored), Name: name}
	if entry.Type()&fs.ModeSymlink != 0 {
		f.Err = fmt.Errorf("%w: symbolic link", ingest.ErrNotRegular)
		if _, err := os.Stat(name); err != nil {
			f.Err = fmt.Errorf("%w: symbolic link to nothing", ingest.ErrNotRegular)
		}
		return f
	}
	info, err := entry.Info()
	if err != nil {
		f.Err = reason(err)
		return f
	}
	return w.source.file(stored, name, info)
}

// stored is the path below the folder that holds the root, as the names on
// disk spell it.
func (w *walker) stored(name string) string {
	rel, err := filepath.Rel(w.dir, name)
	if err != nil || rel == "." {
		return w.base
	}
	return path.Join(w.base, filepath.ToSlash(rel))
}

// file describes a found file and says what is known to keep it from being read.
func (s *Source) file(stored, name string, info fs.FileInfo) ingest.File {
	f := ingest.File{Path: storable(stored), Name: name, Size: info.Size(), Modified: info.ModTime()}
	switch {
	case f.Path != stored:
		f.Err = fmt.Errorf("%w: %q", ingest.ErrFileName, name)
	case !info.Mode().IsRegular():
		f.Err = fmt.Errorf("%w: %s", ingest.ErrNotRegular, modeName(info.Mode()))
	case info.Size() > s.config.MaxBytes:
		f.Err = fmt.Errorf("%w: %d bytes, the limit is %d", ingest.ErrTooLarge, info.Size(), s.config.MaxBytes)
	}
	return f
}

// storable replaces what the database refuses in a name, so that the file can
// at least be reported.
func storable(p string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(p, "\ufffd"), "\x00", "\ufffd")
}

func modeName(m fs.FileMode) string {
	switch {
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	case m&fs.ModeDevice != 0:
		return "device"
	}
	return m.Type().String()
}

func rootError(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("no such file or folder: %w", fs.ErrNotExist)
	}
	return reason(err)
}

// reason drops the path from a file error: the report names it already.
func reason(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return fmt.Errorf("%s: %w", pe.Op, pe.Err)
	}
	return err
}
