package chat

import (
	"errors"
	"fmt"
)

func (l literal) eval(*interp) (value, error) { return l.v, nil }

func (n name) eval(in *interp) (value, error) {
	if v, ok := in.vars.lookup(n.id); ok {
		return v, nil
	}
	if f := function(n.id); f != nil {
		return f, nil
	}
	return undefined{n.id}, nil
}

func (in *interp) evalAll(xs []expr) ([]value, error) {
	out := make([]value, len(xs))
	for i, x := range xs {
		var err error
		if out[i], err = in.eval(x); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (l listLit) eval(in *interp) (value, error) {
	items, err := in.evalAll(l.items)
	return &list{items: items, tuple: l.tuple}, err
}

func (d dictLit) eval(in *interp) (value, error) {
	out := &dict{}
	for i, k := range d.keys {
		key, err := in.eval(k)
		if err != nil {
			return nil, err
		}
		v, err := in.eval(d.values[i])
		if err != nil {
			return nil, err
		}
		if !out.set(key, v) {
			return nil, fmt.Errorf("%s cannot be a key", typeName(key))
		}
	}
	return out, nil
}

func (a attr) eval(in *interp) (value, error) {
	obj, err := in.eval(a.obj)
	if err != nil {
		return nil, err
	}
	if m := method(obj, a.name); m != nil {
		return m, nil
	}
	v, err := member(obj, scaffold(a.name))
	return v, at(a.line, "attribute "+a.name, err)
}

func (x index) eval(in *interp) (value, error) {
	obj, err := in.eval(x.obj)
	if err != nil {
		return nil, err
	}
	key, err := in.eval(x.key)
	if err != nil {
		return nil, err
	}
	v, err := member(obj, key)
	if _, missing := v.(undefined); missing {
		if t, ok := key.(text); ok && !t.originOf().content {
			if m := method(obj, t.s); m != nil {
				return m, nil
			}
		}
	}
	return v, at(x.line, "subscript", err)
}

// member is obj[key], undefined when there is none.
func member(obj, key value) (value, error) {
	missing := undefined{"element"}
	if t, ok := key.(text); ok {
		missing.what = t.s
	}
	switch o := obj.(type) {
	case undefined:
		return nil, fmt.Errorf("%s is undefined", o.what)
	case loopState:
		return o.member(missing.what), nil
	case *dict:
		if v, ok := o.get(key); ok {
			return v, nil
		}
	case *namespace:
		if v, ok := o.vars.get(key); ok {
			return v, nil
		}
	case *list:
		if i, ok := position(key, len(o.items)); ok {
			return o.items[i], nil
		}
	case text:
		offs := o.offsets()
		if i, ok := position(key, len(offs)-1); ok {
			return o.slice(offs[i], offs[i+1]), nil
		}
	}
	return missing, nil
}

// position turns an index, negative from the end, into one of 0…n-1.
func position(key value, n int) (int, bool) {
	i, _, isInt, ok := number(key)
	if !ok || !isInt {
		return 0, false
	}
	if i < 0 {
		i += int64(n)
	}
	return int(i), i >= 0 && i < int64(n)
}

func (c call) eval(in *interp) (value, error) {
	fn, err := in.eval(c.fn)
	if err != nil {
		return nil, err
	}
	construct := "call of " + describe(c.fn)
	f, ok := fn.(callable)
	if !ok {
		return nil, at(c.line, construct, fmt.Errorf("%s cannot be called", typeName(fn)))
	}
	a, err := c.args.eval(in)
	if err != nil {
		return nil, err
	}
	v, err := f(in, a)
	return v, at(c.line, construct, err)
}

// describe names the function of a call.
func describe(x expr) string {
	switch x := x.(type) {
	case name:
		return x.id
	case attr:
		return x.name
	}
	return "an expression"
}

func (f filter) eval(in *interp) (value, error) {
	obj, err := in.eval(f.obj)
	if err != nil {
		return nil, err
	}
	a, err := f.args.eval(in)
	if err != nil {
		return nil, err
	}
	v, err := in.filter(f.name, obj, a)
	return v, at(f.line, "filter "+f.name, err)
}

func (t test) eval(in *interp) (value, error) {
	obj, err := in.eval(t.obj)
	if err != nil {
		return nil, err
	}
	a, err := t.args.eval(in)
	if err != nil {
		return nil, err
	}
	ok, err := in.test(t.name, obj, a)
	return ok != t.negate, at(t.line, "test "+t.name, err)
}

func (c conditional) eval(in *interp) (value, error) {
	cond, err := in.eval(c.cond)
	switch {
	case err != nil:
		return nil, err
	case truth(cond):
		return in.eval(c.then)
	case c.otherwise == nil:
		return undefined{"the inline if without else"}, nil
	}
	return in.eval(c.otherwise)
}

// arguments are the evaluated arguments of a call.
type arguments struct {
	pos   []value
	names []string
	named []value
}

func (a args) eval(in *interp) (arguments, error) {
	pos, err := in.evalAll(a.pos)
	if err != nil {
		return arguments{}, err
	}
	named, err := in.evalAll(a.named)
	return arguments{pos, a.names, named}, err
}

// get is argument i, or the one of that name.
func (a arguments) get(i int, id string) (value, bool) {
	if i < len(a.pos) {
		return a.pos[i], true
	}
	for j, n := range a.names {
		if n == id {
			return a.named[j], true
		}
	}
	return nil, false
}

var errMissing = errors.New("argument missing")

// text is argument i as a string.
func (a arguments) text(i int, id string) (text, error) {
	v, ok := a.get(i, id)
	if !ok {
		return text{}, fmt.Errorf("%s: %w", id, errMissing)
	}
	t, ok := v.(text)
	if !ok {
		return text{}, fmt.Errorf("%s must be a string, not %s", id, typeName(v))
	}
	return t, nil
}

// integer is argument i as an integer, or fallback when it is not given.
func (a arguments) integer(i int, id string, fallback int) (int, error) {
	v, ok := a.get(i, id)
	if !ok || v == nil {
		return fallback, nil
	}
	n, _, isInt, ok := number(v)
	if !ok || !isInt {
		return 0, fmt.Errorf("%s must be an integer, not %s", id, typeName(v))
	}
	return int(n), nil
}
