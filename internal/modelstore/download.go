package modelstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// partial is a file that a download is written to.
type partial interface {
	io.Writer
	Truncate(size int64) error
	Sync() error
	Close() error
}

func openPartial(path string) (partial, error) {
	return os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
}

// download brings one hub file to partial, going on where an earlier run ended.
type download struct {
	hub      hub
	ref      reference
	entry    hubEntry
	partial  string
	progress Progress
}

// origin is kept beside a partial file and says what it is the start of.
type origin struct {
	SHA256 string `json:"sha256,omitempty"`
	// ETag is the storage's validator for If-Range.
	ETag string `json:"etag,omitempty"`
}

func (d *download) note() string { return d.partial + ".json" }

// have is how much of the file is there already.
func (d *download) have() int64 {
	info, err := os.Stat(d.partial)
	if err != nil {
		return 0
	}
	return info.Size()
}

// forget removes the note, remove the partial file too.
func (d *download) forget() error { return ignoreMissing(os.Remove(d.note())) }

func (d *download) remove() error {
	return errors.Join(ignoreMissing(os.Remove(d.partial)), d.forget())
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// errStalled ends an attempt whose body brings nothing any more.
var errStalled = errors.New("nothing came any more")

// errInterrupted says that the body ended early or could not be read: the
// rest can be asked for.
var errInterrupted = errors.New("the connection was lost")

// run fetches until the file is whole. A lost connection is taken up again as
// long as each attempt brings something, and a few times when it does not.
func (d *download) run(ctx context.Context) error {
	const idleAttempts = 4
	for idle := 0; ; {
		before := d.have()
		err := d.attempt(ctx)
		if !errors.Is(err, errInterrupted) {
			return err
		}
		idle++
		if d.have() > before {
			idle = 0
		}
		if idle == idleAttempts {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(d.hub.pause << idle):
		}
	}
}

// attempt sends one request for what is missing and writes the answer.
func (d *download) attempt(ctx context.Context) error {
	have, etag := d.resumable()
	if have > 0 && have == d.entry.size && d.entry.sha256 != "" {
		return verifyFile(ctx, d.partial, d.entry.sha256, d.progress) // whole, but not yet in place
	}
	header := http.Header{}
	if have > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", have))
		header.Set("If-Range", etag)
	}
	alive, giveUp := context.WithCancelCause(ctx)
	defer giveUp(nil)
	resp, err := d.hub.do(alive, http.MethodGet, d.ref, header, nil)
	if ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), closeBody(resp))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errInterrupted, err)
	}
	defer func() { _ = closeBody(resp) }() // only read from
	switch {
	case resp.StatusCode == http.StatusPartialContent && have > 0:
		if want := fmt.Sprintf("bytes %d-", have); !strings.HasPrefix(resp.Header.Get("Content-Range"), want) {
			return fmt.Errorf("the hub answers with the wrong part %q", resp.Header.Get("Content-Range"))
		}
	case resp.StatusCode == http.StatusOK:
		have = 0 // from the start, because the file has changed or ranges are not served
	case resp.StatusCode == http.StatusRequestedRangeNotSatisfiable && have > 0:
		return errors.Join(fmt.Errorf("%w: the file on the hub has changed", errInterrupted), d.remove())
	case resp.StatusCode >= http.StatusInternalServerError:
		return fmt.Errorf("%w: %w", errInterrupted, statusError(resp.StatusCode))
	default:
		return statusError(resp.StatusCode)
	}
	return d.store(ctx, &impatient{resp.Body, d.hub.stall, func() { giveUp(errStalled) }}, resp, have)
}

// impatient gives up on a reader that keeps it waiting. What is done with the bytes takes
// as long as it takes.
type impatient struct {
	io.Reader
	patience time.Duration
	giveUp   func()
}

// Read reads on.
func (r *impatient) Read(p []byte) (int, error) {
	defer time.AfterFunc(r.patience, r.giveUp).Stop()
	return r.Reader.Read(p)
}

func closeBody(resp *http.Response) error {
	if resp == nil {
		return nil
	}
	return resp.Body.Close()
}

// resumable is how much of the partial file can be kept, and its validator.
func (d *download) resumable() (have int64, etag string) {
	raw, err := os.ReadFile(d.note())
	if err != nil {
		return 0, ""
	}
	var from origin
	if json.Unmarshal(raw, &from) != nil || from.SHA256 != d.entry.sha256 || !strongETag(from.ETag) {
		return 0, ""
	}
	return d.have(), from.ETag
}

// strongETag reports whether a validator may be used with If-Range.
func strongETag(etag string) bool { return strings.HasPrefix(etag, `"`) }

// store writes the body of an answer behind the first have bytes and checks the whole.
func (d *download) store(ctx context.Context, body io.Reader, resp *http.Response, have int64) error {
	note, err := json.Marshal(origin{SHA256: d.entry.sha256, ETag: resp.Header.Get("ETag")})
	if err != nil {
		return err
	}
	if err := os.WriteFile(d.note(), note, 0o644); err != nil {
		return err
	}
	out, err := d.hub.create(d.partial)
	if err != nil {
		return err
	}
	sum := sha256.New()
	total := d.entry.size
	if total == 0 && resp.ContentLength > 0 {
		total = have + resp.ContentLength
	}
	err = out.Truncate(have)
	if err == nil {
		err = d.hashHave(sum, have)
	}
	if err == nil {
		err = d.copy(ctx, io.MultiWriter(out, sum), body, have, total)
	}
	if err := errors.Join(err, out.Sync(), out.Close()); err != nil {
		return err
	}
	return d.check(hex.EncodeToString(sum.Sum(nil)), total)
}

func (d *download) hashHave(sum hash.Hash, have int64) error {
	if have == 0 {
		return nil
	}
	f, err := os.Open(d.partial)
	if err != nil {
		return err
	}
	_, err = io.CopyN(sum, f, have)
	return errors.Join(err, f.Close())
}

// copy tells a failing source (worth another attempt) from a failing disk.
func (d *download) copy(ctx context.Context, out io.Writer, in io.Reader, have, total int64) error {
	body := &source{meter: meter{ctx: ctx, in: in, done: have, total: total, stage: "downloading " + d.ref.file, progress: d.progress}}
	_, err := io.Copy(out, body)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case body.failed != nil:
		return fmt.Errorf("%w: %w", errInterrupted, body.failed)
	}
	return err
}

// source remembers whether reading failed.
type source struct {
	meter
	failed error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.meter.Read(p)
	if err != nil && !errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		s.failed = err
	}
	return n, err
}

// check compares size and checksum of the whole file; a wrong one is removed.
func (d *download) check(sum string, total int64) error {
	if have := d.have(); total > 0 && have < total {
		return fmt.Errorf("%w: needs %d bytes, has %d", errInterrupted, total, have)
	} else if total > 0 && have > total {
		return errors.Join(fmt.Errorf("%s: needs %d bytes, has %d; the file was removed", d.ref.file, total, have), d.remove())
	}
	if d.entry.sha256 == "" || sum == d.entry.sha256 {
		return nil
	}
	return errors.Join(&ChecksumError{File: filepath.Base(d.ref.file), Want: d.entry.sha256, Got: sum}, d.remove())
}
