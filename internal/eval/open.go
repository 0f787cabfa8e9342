package eval

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Languages says in which language a parallel set is asked and in which its
// documents are, such as "ko-en"; other sets have only one form.
type Languages string

// Open reads the set in a folder. It knows the forms by their files: SQuAD
// (one *.json of articles), BEIR (corpus.jsonl, queries, qrels), Cranfield and
// TREC text, a pair of files with the same questions in two languages, MTRAG's
// reference tasks and RGB's facts. Files may be compressed with gzip.
func Open(dir string, lang Languages) (*Set, error) {
	name := folder(dir).name()
	for _, form := range []struct {
		mark string
		read func(folder, string) (*Set, error)
	}{
		{"corpus.jsonl*", readBEIR},
		{"cran.all*", readCranfield},
		{"doc-text.trec*", readTREC},
		{"*_kor.json*", func(f folder, name string) (*Set, error) { return readParallel(f, name, lang) }},
		{"reference.jsonl*", readMTRAG},
		{"*_fact.json*", readRGB},
		{"*.json*", readSQuAD},
	} {
		if _, err := folder(dir).find(form.mark); err != nil {
			continue
		}
		s, err := form.read(folder(dir), name)
		if err != nil {
			return nil, fmt.Errorf("set %s: %w", name, err)
		}
		return s.check()
	}
	return nil, fmt.Errorf("%w: %s holds none of the known forms", ErrSet, dir)
}

// folder is where the files of a set lie.
type folder string

func (f folder) name() string { return filepath.Base(string(f)) }

// find returns the one file that matches one of the patterns.
func (f folder) find(patterns ...string) (string, error) {
	for _, p := range patterns {
		names, err := filepath.Glob(filepath.Join(string(f), p))
		if err != nil {
			return "", err
		}
		if len(names) > 0 {
			return names[0], nil
		}
	}
	return "", fmt.Errorf("%w: no file named %s in %s", ErrSet, strings.Join(patterns, " or "), f)
}

// read hands the content of a file to fn, unpacked.
func (f folder) read(fn func(io.Reader) error, patterns ...string) (err error) {
	name, err := f.find(patterns...)
	if err != nil {
		return err
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	r := io.Reader(file)
	if strings.HasSuffix(name, ".gz") {
		z, err := gzip.NewReader(file)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		r = z
	}
	if err := fn(r); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// maxLine bounds a line of the files that are read by lines.
const maxLine = 16 << 20

// lines calls fn with every line that is not blank.
func (f folder) lines(fn func(line string) error, patterns ...string) error {
	return f.read(func(r io.Reader) error {
		s := bufio.NewScanner(r)
		s.Buffer(nil, maxLine)
		for s.Scan() {
			if strings.TrimSpace(s.Text()) == "" {
				continue
			}
			if err := fn(s.Text()); err != nil {
				return err
			}
		}
		return s.Err()
	}, patterns...)
}

// decodeAll reads JSON values one after the other.
func decodeAll[T any](f folder, fn func(T) error, patterns ...string) error {
	return f.read(func(r io.Reader) error {
		for d := json.NewDecoder(r); ; {
			var v T
			if err := d.Decode(&v); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			if err := fn(v); err != nil {
				return err
			}
		}
	}, patterns...)
}
