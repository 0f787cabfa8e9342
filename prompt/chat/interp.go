package chat

import (
	"fmt"
	"time"
)

// The bounds of one rendering.
const (
	maxSteps  = 1_000_000 // nodes evaluated and items walked over
	maxOutput = 16 << 20  // bytes of the rendered prompt, and of any string
	maxWork   = 64 << 20  // bytes of all strings built on the way
	maxDepth  = 1000      // evaluations inside one another
)

// interp is the state of one rendering.
type interp struct {
	vars  *frame
	out   *builder
	block text // what blockText stands for
	steps int
	work  int
	depth int
	now   time.Time
}

// frame is one scope of names.
type frame struct {
	vars   map[string]value
	parent *frame
}

func (f *frame) lookup(id string) (value, bool) {
	for ; f != nil; f = f.parent {
		if v, ok := f.vars[id]; ok {
			return v, true
		}
	}
	return nil, false
}

// push opens a scope and returns what closes it.
func (in *interp) push(parent *frame) (pop func()) {
	outer := in.vars
	in.vars = &frame{vars: map[string]value{}, parent: parent}
	return func() { in.vars = outer }
}

func (in *interp) step(n int) error {
	if in.steps += n; in.steps > maxSteps {
		return fmt.Errorf("more than %d steps: %w", maxSteps, ErrLimit)
	}
	return nil
}

func (in *interp) checkSize(n int) error {
	if n > maxOutput {
		return fmt.Errorf("more than %d bytes of text: %w", maxOutput, ErrLimit)
	}
	return nil
}

// spend accounts for n bytes of a string that was built.
func (in *interp) spend(n int) error {
	if in.work += n; in.work > maxWork {
		return fmt.Errorf("more than %d bytes of text built: %w", maxWork, ErrLimit)
	}
	return in.checkSize(n)
}

// eval evaluates x within the bounds of steps and depth.
func (in *interp) eval(x expr) (value, error) {
	in.depth++
	defer func() { in.depth-- }()
	if in.depth > maxDepth {
		return nil, fmt.Errorf("more than %d evaluations inside one another: %w", maxDepth, ErrLimit)
	}
	if err := in.step(1); err != nil {
		return nil, err
	}
	v, err := x.eval(in)
	if err != nil {
		return nil, err
	}
	if t, ok := v.(text); ok {
		return v, in.checkSize(len(t.s))
	}
	return v, nil
}

// capture runs a body and gives what it wrote.
func (in *interp) capture(b body) (text, error) {
	outer := in.out
	in.out = &builder{}
	defer func() { in.out = outer }()
	_, err := b.exec(in)
	if err != nil {
		return text{}, err
	}
	return in.out.text(), in.spend(in.out.len())
}

func (in *interp) write(t text) error {
	if err := in.spend(len(t.s)); err != nil {
		return err
	}
	in.out.add(t)
	return in.checkSize(in.out.len())
}

// items is what a loop walks over.
func (in *interp) items(v value) ([]value, error) {
	var out []value
	switch v := v.(type) {
	case *list:
		out = v.items
	case *dict:
		out = v.keys
	case undefined:
	case text:
		offs := v.offsets()
		for i, from := range offs[:len(offs)-1] {
			out = append(out, v.slice(from, offs[i+1]))
		}
	default:
		return nil, fmt.Errorf("%s is not iterable", typeName(v))
	}
	return out, in.step(len(out))
}
