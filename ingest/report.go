package ingest

import (
	"errors"
	"time"
)

// Status is what became of a file.
type Status string

// The states a file ends in.
const (
	Indexed   Status = "indexed"
	Unchanged Status = "unchanged"
	Skipped   Status = "skipped" // nothing to index: empty, unsupported, not a file
	Failed    Status = "failed"
	Remaining Status = "remaining" // the run ended before its turn
	Pruned    Status = "pruned"    // deleted from the store
)

// FileResult is the outcome of one file.
type FileResult struct {
	Path   string `json:"path"`
	Status Status `json:"status"`
	// Reason says why a file was skipped or failed.
	Reason string `json:"reason,omitempty"`
	Chunks int    `json:"chunks,omitempty"`
	Tokens int    `json:"tokens,omitempty"`
	// Charset is the encoding found; Warnings what was changed while reading.
	Charset  string   `json:"charset,omitempty"`
	Warnings []string `json:"warnings,omitempty"`
}

// Report sums up a run: Found = Indexed + Unchanged + Skipped + Failed + Remaining.
type Report struct {
	Found     int `json:"found"`
	Indexed   int `json:"indexed"`
	Unchanged int `json:"unchanged"`
	Skipped   int `json:"skipped"`
	Failed    int `json:"failed"`
	Remaining int `json:"remaining"`
	Pruned    int `json:"pruned"`
	// Chunks and Tokens are those of the indexed documents; Tokens is what the
	// embedder was given, sentences included.
	Chunks int `json:"chunks"`
	Tokens int `json:"tokens"`
	// Repeats is how many chunks and sentences took the vector of an equal text
	// of this run instead of being given to the embedder.
	Repeats int `json:"repeats,omitempty"`
	// Interrupted says that the run was cancelled.
	Interrupted bool          `json:"interrupted,omitempty"`
	Files       []FileResult  `json:"files"`
	Elapsed     time.Duration `json:"elapsed_ns"`
	Times       Times         `json:"times"`
}

// Complete reports whether every file found is either stored or rightly skipped.
func (r Report) Complete() bool { return r.Failed == 0 && r.Remaining == 0 }

// Progress is where a run stands.
type Progress struct {
	// Documents of Total are settled, with Bytes of TotalBytes.
	Documents  int   `json:"documents"`
	Total      int   `json:"total"`
	Bytes      int64 `json:"bytes"`
	TotalBytes int64 `json:"total_bytes"`
	// Chunks are stored; Tokens were given to the embedder.
	Chunks int `json:"chunks"`
	Tokens int `json:"tokens"`
	// Current is the file read last.
	Current string        `json:"current"`
	Elapsed time.Duration `json:"elapsed_ns"`
}

// Observer is told of each change, one call at a time; it must return quickly.
type Observer func(Progress)

// starting, embedded and settle move the progress on.
func (r *run) starting(path string) {
	r.advance(func() { r.progress.Current = path })
}

func (r *run) embedded(tokens int) {
	r.advance(func() { r.progress.Tokens += tokens })
}

func (r *run) settle(file int, f FileResult) {
	r.advance(func() {
		f.Path = r.results[file].Path
		r.results[file] = f
		r.progress.Documents++
		r.progress.Bytes += r.listing.Files[file].Size
		r.progress.Chunks += f.Chunks
	})
}

func (r *run) advance(change func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	change()
	r.progress.Elapsed = time.Since(r.started)
	r.observe(r.progress)
}

func success(w *work) FileResult {
	d := &w.encoded.Document
	return FileResult{Status: Indexed, Chunks: len(w.encoded.Chunks), Tokens: w.tokens, Charset: d.Charset, Warnings: d.Warnings}
}

// failure tells what is skipped by its nature from what went wrong.
func failure(d Document, err error) FileResult {
	f := FileResult{Status: Failed, Reason: err.Error(), Charset: d.Charset, Warnings: d.Warnings}
	if errors.Is(err, ErrEmpty) || errors.Is(err, ErrUnsupported) || errors.Is(err, ErrNotRegular) {
		f.Status = Skipped
	}
	return f
}

func (r *run) report(interrupted bool) Report {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := Report{Found: len(r.results), Pruned: len(r.pruned), Repeats: r.encoder.repeats, Interrupted: interrupted, Elapsed: time.Since(r.started), Times: r.watches.times(r.encoder.watch), Files: []FileResult{}}
	for _, f := range r.results {
		switch f.Status {
		case Indexed:
			out.Indexed++
		case Unchanged:
			out.Unchanged++
		case Skipped:
			out.Skipped++
		case Failed:
			out.Failed++
		default:
			out.Remaining++
		}
		out.Chunks += f.Chunks
		out.Tokens += f.Tokens
	}
	out.Files = append(append(out.Files, r.results...), r.pruned...)
	return out
}
