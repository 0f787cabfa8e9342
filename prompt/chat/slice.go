package chat

import "fmt"

func (s sliceOf) eval(in *interp) (value, error) {
	obj, err := in.eval(s.obj)
	if err != nil {
		return nil, err
	}
	var bounds [3]*int64
	for i, x := range []expr{s.start, s.stop, s.step} {
		if x == nil {
			continue
		}
		v, err := in.eval(x)
		if err != nil {
			return nil, err
		}
		if n, _, isInt, ok := number(v); ok && isInt {
			bounds[i] = &n
		} else if v != nil {
			return nil, at(s.line, "slice", fmt.Errorf("%s is no integer", typeName(v)))
		}
	}
	v, err := in.slice(obj, bounds)
	return v, at(s.line, "slice", err)
}

func (in *interp) slice(obj value, bounds [3]*int64) (value, error) {
	switch o := obj.(type) {
	case *list:
		at, err := picks(len(o.items), bounds)
		out := &list{tuple: o.tuple, items: make([]value, len(at))}
		for i, j := range at {
			out.items[i] = o.items[j]
		}
		if err != nil {
			return nil, err
		}
		return out, in.step(len(at))
	case text:
		return in.sliceText(o, bounds)
	case undefined:
		return nil, fmt.Errorf("%s is undefined", o.what)
	}
	return nil, fmt.Errorf("%s has no slices", typeName(obj))
}

func (in *interp) sliceText(t text, bounds [3]*int64) (value, error) {
	offs := t.offsets()
	if bounds[2] == nil || *bounds[2] == 1 {
		from, to := clip(bounds[0], 0, len(offs)-1), clip(bounds[1], len(offs)-1, len(offs)-1)
		return t.slice(offs[from], offs[max(from, to)]), in.spend(len(t.s))
	}
	at, err := picks(len(offs)-1, bounds)
	if err != nil {
		return nil, err
	}
	var b builder
	for _, j := range at {
		b.add(t.slice(offs[j], offs[j+1]))
	}
	if err := in.step(len(at) * (1 + len(t.spans))); err != nil {
		return nil, err
	}
	return b.text(), in.spend(b.len())
}

// clip is a bound counted from either end, kept within 0…n.
func clip(b *int64, fallback, n int) int {
	if b == nil {
		return fallback
	}
	i := *b
	if i < 0 {
		i = max(i+int64(n), 0)
	}
	return int(min(i, int64(n)))
}

// picks lists the positions that Python's [start:stop:step] takes of n.
func picks(n int, bounds [3]*int64) ([]int, error) {
	step := int64(1)
	if bounds[2] != nil {
		step = *bounds[2]
	}
	if step == 0 {
		return nil, fmt.Errorf("step is zero")
	}
	var at []int
	if step > 0 {
		stop := int64(clip(bounds[1], n, n))
		for i := int64(clip(bounds[0], 0, n)); i < stop; i += min(step, int64(n)+1) {
			at = append(at, int(i))
		}
		return at, nil
	}
	stop := int64(downTo(bounds[1], -1, n))
	for i := int64(downTo(bounds[0], n-1, n)); i > stop; i += max(step, -int64(n)-1) {
		at = append(at, int(i))
	}
	return at, nil
}

// downTo is a bound of a slice that runs backwards, kept within -1…n-1.
func downTo(b *int64, fallback, n int) int {
	if b == nil {
		return fallback
	}
	i := *b
	if i < 0 {
		i = max(i+int64(n), -1)
	}
	return int(min(i, int64(n)-1))
}
