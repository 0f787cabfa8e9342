package chat

import "fmt"

// function is a global function of the template language, nil if unknown.
func function(id string) callable {
	switch id {
	case "namespace":
		return func(in *interp, a arguments) (value, error) {
			d, err := newDict(a)
			if err != nil {
				return nil, err
			}
			return &namespace{*d}, nil
		}
	case "dict":
		return func(in *interp, a arguments) (value, error) { return newDict(a) }
	case "range":
		return rangeOf
	case "raise_exception":
		return func(in *interp, a arguments) (value, error) {
			v, _ := a.get(0, "message")
			t, err := in.str(v)
			if err != nil {
				return nil, err
			}
			return nil, &RaisedError{t.s}
		}
	case "strftime_now":
		return func(in *interp, a arguments) (value, error) {
			layout, err := a.text(0, "format")
			if err != nil {
				return nil, err
			}
			s, err := strftime(in.now, layout.s)
			return scaffold(s), err
		}
	}
	return nil
}

// newDict is dict(mapping, key=value, …).
func newDict(a arguments) (*dict, error) {
	d := &dict{}
	for _, v := range a.pos {
		from, ok := v.(*dict)
		if !ok {
			return nil, fmt.Errorf("%s is no mapping", typeName(v))
		}
		for i, k := range from.keys {
			d.set(k, from.values[i])
		}
	}
	for i, id := range a.names {
		d.put(id, a.named[i])
	}
	return d, nil
}

func rangeOf(in *interp, a arguments) (value, error) {
	var n [3]int
	for i := range n {
		var err error
		if n[i], err = a.integer(i, "range", 0); err != nil {
			return nil, err
		}
	}
	start, stop, step := n[0], n[1], n[2]
	switch len(a.pos) {
	case 1:
		start, stop, step = 0, n[0], 1
	case 2:
		step = 1
	case 3:
	default:
		return nil, fmt.Errorf("takes 1 to 3 arguments, got %d", len(a.pos))
	}
	if step == 0 {
		return nil, fmt.Errorf("step is zero")
	}
	l := &list{}
	for i := start; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if err := in.step(1); err != nil {
			return nil, err
		}
		l.items = append(l.items, int64(i))
	}
	return l, nil
}
