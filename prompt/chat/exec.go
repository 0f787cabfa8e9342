package chat

import "fmt"

func (b body) exec(in *interp) (flow, error) {
	for _, s := range b {
		if err := in.step(1); err != nil {
			return flowNext, err
		}
		if to, err := s.exec(in); err != nil || to != flowNext {
			return to, err
		}
	}
	return flowNext, nil
}

func (d data) exec(in *interp) (flow, error) { return flowNext, in.write(d.t) }

func (e emit) exec(in *interp) (flow, error) {
	v, err := in.eval(e.x)
	if err != nil {
		return flowNext, at(e.line, "output", err)
	}
	t, err := in.str(v)
	if err == nil {
		err = in.write(t)
	}
	return flowNext, at(e.line, "output", err)
}

func (b branch) exec(in *interp) (flow, error) {
	for i, cond := range b.conds {
		v, err := in.eval(cond)
		if err != nil {
			return flowNext, err
		}
		if truth(v) {
			return b.bodies[i].exec(in)
		}
	}
	return b.orElse.exec(in)
}

func (j jump) exec(*interp) (flow, error) { return j.to, nil }

func (f loop) exec(in *interp) (flow, error) {
	items, err := f.selected(in)
	if err != nil {
		return flowNext, at(f.line, "for", err)
	}
	if len(items) == 0 {
		defer in.push(in.vars)()
		return f.orElse.exec(in)
	}
	for i := range items {
		to, err := f.pass(in, items, i)
		if err != nil {
			return flowNext, at(f.line, "for", err)
		}
		if to == flowBreak {
			break
		}
	}
	return flowNext, nil
}

// selected is the items that pass the loop's own if.
func (f loop) selected(in *interp) ([]value, error) {
	seq, err := in.eval(f.seq)
	if err != nil {
		return nil, err
	}
	items, err := in.items(seq)
	if err != nil || f.cond == nil {
		return items, err
	}
	defer in.push(in.vars)()
	var out []value
	for _, it := range items {
		if err := in.bind(f.targets, it); err != nil {
			return nil, err
		}
		ok, err := in.eval(f.cond)
		if err != nil {
			return nil, err
		}
		if truth(ok) {
			out = append(out, it)
		}
	}
	return out, nil
}

// pass runs the body for item i in a scope of its own.
func (f loop) pass(in *interp, items []value, i int) (flow, error) {
	defer in.push(in.vars)()
	in.vars.vars["loop"] = loopState{items, i}
	if err := in.bind(f.targets, items[i]); err != nil {
		return flowNext, err
	}
	return f.body.exec(in)
}

// bind gives a value to one name, or its parts to several.
func (in *interp) bind(targets []string, v value) error {
	if len(targets) == 1 {
		in.vars.vars[targets[0]] = v
		return nil
	}
	parts, err := in.items(v)
	if err != nil {
		return err
	}
	if len(parts) != len(targets) {
		return fmt.Errorf("%d values for %d names", len(parts), len(targets))
	}
	for i, id := range targets {
		in.vars.vars[id] = parts[i]
	}
	return nil
}

func (s set) exec(in *interp) (flow, error) {
	v, err := in.eval(s.x)
	if err != nil {
		return flowNext, at(s.line, "set", err)
	}
	if s.attr == "" {
		return flowNext, at(s.line, "set", in.bind(s.targets, v))
	}
	obj, _ := in.vars.lookup(s.targets[0])
	ns, ok := obj.(*namespace)
	if !ok {
		return flowNext, at(s.line, "set", fmt.Errorf("%s is no namespace", s.targets[0]))
	}
	ns.vars.put(s.attr, v)
	return flowNext, nil
}

func (s setBlock) exec(in *interp) (flow, error) {
	t, err := in.filtered(s.filter, s.body)
	if err != nil {
		return flowNext, at(s.line, "set", err)
	}
	in.vars.vars[s.target] = t
	return flowNext, nil
}

func (f filterBlock) exec(in *interp) (flow, error) {
	v, err := in.filtered(f.filter, f.body)
	if err != nil {
		return flowNext, err
	}
	t, err := in.str(v)
	if err != nil {
		return flowNext, err
	}
	return flowNext, in.write(t)
}

// filtered is the text of a block with a filter, if any, applied to it.
func (in *interp) filtered(f expr, b body) (value, error) {
	pop := in.push(in.vars)
	t, err := in.capture(b)
	pop()
	if err != nil || f == nil {
		return t, err
	}
	outer := in.block
	in.block = t
	defer func() { in.block = outer }()
	return in.eval(f)
}

func (blockText) eval(in *interp) (value, error) { return in.block, nil }

// exec defines the macro; its body sees the scope it was defined in.
func (m macroDef) exec(in *interp) (flow, error) {
	scope := in.vars
	in.vars.vars[m.name] = callable(func(in *interp, a arguments) (value, error) {
		defer in.push(scope)()
		if err := m.bind(in, a); err != nil {
			return nil, err
		}
		return in.capture(m.body)
	})
	return flowNext, nil
}

func (m macroDef) bind(in *interp, a arguments) error {
	if len(a.pos) > len(m.params) {
		return fmt.Errorf("macro %s takes %d arguments, got %d", m.name, len(m.params), len(a.pos))
	}
	for i, id := range m.params {
		v, ok := a.get(i, id)
		if d := i - (len(m.params) - len(m.defaults)); !ok && d >= 0 {
			var err error
			if v, err = in.eval(m.defaults[d]); err != nil {
				return err
			}
		} else if !ok {
			v = undefined{id}
		}
		in.vars.vars[id] = v
	}
	return nil
}
