package sample

import (
	"encoding/json"
	"errors"
	"fmt"
)

// document is the JSON of a schema, and what reading it has taken so far. What stands
// beside an "enum" is compiled apart, so one document has several compilers.
type document struct {
	raw     []byte
	objects map[string]members // those that references go through, by their pointer
	read    int                // bytes of schemas and of what pointers go through, those inside others again
	depth   int                // schemas inside each other now
}

const (
	// maxNesting bounds how deep schemas stand inside each other, references followed,
	// and so the stack.
	maxNesting = 256
	// maxRead bounds document.read: compilers that begin anew for every reference to an
	// "enum" could double the work again and again. leastRead is what the shortest schema
	// counts for, since it becomes a few nodes however short it is.
	maxRead   = 16 << 20
	leastRead = 512
)

var (
	errNesting = fmt.Errorf(`schemas nest more than %d deep, or one leads back to the "enum" or "const" that it stands beside`, maxNesting)
	errRead    = errors.New("the schema takes too long to read: its references lead too deep, or to each other too often")
)

func newDocument(raw []byte) *document {
	return &document{raw: raw, objects: map[string]members{}}
}

// enter counts a schema of so many bytes that is read now; leave ends it.
func (d *document) enter(bytes int) error {
	if d.depth == maxNesting {
		return errNesting
	}
	if err := d.charge(max(bytes, leastRead)); err != nil {
		return err
	}
	d.depth++
	return nil
}

func (d *document) charge(bytes int) error {
	if d.read += bytes; d.read > maxRead {
		return errRead
	}
	return nil
}

func (d *document) leave() { d.depth-- }

// members are those of the object raw at a pointer.
func (d *document) members(pointer string, raw json.RawMessage) (members, error) {
	if m, ok := d.objects[pointer]; ok {
		return m, nil
	}
	if err := d.charge(len(raw)); err != nil {
		return nil, err
	}
	m, err := parseMembers(raw)
	if err == nil {
		d.objects[pointer] = m
	}
	return m, err
}
