package localpg

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
)

// maxLog is the size in bytes beyond which the older half of the log is dropped.
const maxLog = 8 << 20

// openLog opens the server's log for appending. The server writes to the file
// itself, so that it can outlive ragd.
func openLog(path string) (*os.File, error) {
	if err := trim(path, maxLog); err != nil {
		return nil, err
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}

// trim drops the older part of a log that has outgrown limit, in place: the
// server holds the file open for appending and goes on at its new end. What
// the server writes during the copy may be lost.
func trim(path string, limit int64) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil || info.Size() <= limit {
		return err
	}
	keep := make([]byte, limit/2)
	n, err := f.ReadAt(keep, info.Size()-int64(len(keep)))
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	keep = keep[:n]
	if i := bytes.IndexByte(keep, '\n'); i >= 0 {
		keep = keep[i+1:]
	}
	if err := f.Truncate(0); err != nil {
		return err
	}
	_, err = f.WriteAt(keep, 0)
	return err
}

// logTail is the end of the log for an error message.
func logTail(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	b := make([]byte, min(info.Size(), 2000))
	n, _ := f.ReadAt(b, info.Size()-int64(len(b))) // what could be read is shown
	return "\n" + string(lastBytes(b[:n], 2000))
}

// lastBytes returns at most n bytes of b's end, from a line's start.
func lastBytes(b []byte, n int) []byte {
	if len(b) <= n {
		return bytes.TrimSpace(b)
	}
	b = b[len(b)-n:]
	if i := bytes.IndexByte(b, '\n'); i >= 0 {
		b = b[i+1:]
	}
	return bytes.TrimSpace(b)
}
