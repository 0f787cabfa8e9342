package chat

import (
	"fmt"
	"slices"
)

// listFilter holds the filters over sequences.
func (in *interp) listFilter(id string, v value, a arguments) (value, error) {
	switch id {
	case "select", "reject", "selectattr", "rejectattr":
		return in.selected(id, v, a)
	case "map":
		return in.mapped(v, a)
	case "first", "last", "list", "reverse", "unique":
		items, err := in.items(v)
		if err != nil {
			return nil, err
		}
		return in.sequence(id, v, items)
	case "sort", "min", "max", "dictsort":
		return in.ordered(id, v, a)
	}
	return nil, ErrUnsupported
}

func (in *interp) sequence(id string, v value, items []value) (value, error) {
	switch id {
	case "first":
		if len(items) == 0 {
			return undefined{"first of nothing"}, nil
		}
		return items[0], nil
	case "last":
		if len(items) == 0 {
			return undefined{"last of nothing"}, nil
		}
		return items[len(items)-1], nil
	case "unique":
		return in.unique(items)
	case "reverse":
		items = slices.Clone(items)
		slices.Reverse(items)
		if _, ok := v.(text); ok {
			return in.join(&list{items: items}, text{})
		}
	}
	return &list{items: slices.Clone(items)}, nil
}

func (in *interp) unique(items []value) (value, error) {
	out := &list{}
	seen := &dict{}
	for _, it := range items {
		key := folded(it)
		if _, ok := seen.get(key); ok {
			continue
		}
		if !seen.set(key, true) {
			return nil, fmt.Errorf("%s cannot be compared", typeName(it))
		}
		out.items = append(out.items, it)
	}
	return out, nil
}

// itemsIfAny is items, and nothing for none, false and the like.
func (in *interp) itemsIfAny(v value) ([]value, error) {
	if !truth(v) {
		return nil, nil
	}
	return in.items(v)
}

// selected is select, reject, selectattr and rejectattr.
func (in *interp) selected(id string, v value, a arguments) (value, error) {
	items, err := in.itemsIfAny(v)
	if err != nil {
		return nil, err
	}
	byAttr := id == "selectattr" || id == "rejectattr"
	var key text
	if byAttr {
		if key, err = a.text(0, "attribute"); err != nil {
			return nil, err
		}
		a.pos = a.pos[1:]
	}
	keep := id == "select" || id == "selectattr"
	out := &list{}
	for _, it := range items {
		x := it
		if byAttr {
			if x, err = attribute(it, key); err != nil {
				return nil, err
			}
		}
		ok, err := in.passes(x, a)
		if err != nil {
			return nil, err
		}
		if ok == keep {
			out.items = append(out.items, it)
		}
	}
	return out, nil
}

// passes applies the test named by the first argument, or asks for truth.
func (in *interp) passes(v value, a arguments) (bool, error) {
	if len(a.pos) == 0 {
		return truth(v), nil
	}
	id, err := a.text(0, "test")
	if err != nil {
		return false, err
	}
	a.pos = a.pos[1:]
	if isOperator(id.s) {
		other, ok := a.get(0, "other")
		if !ok {
			return false, errMissing
		}
		return in.compare(id.s, v, other)
	}
	return in.test(id.s, v, a)
}

func isOperator(id string) bool {
	return slices.Contains([]string{"==", "!=", "<", "<=", ">", ">="}, id)
}

// attribute follows a path of keys with dots between them.
func attribute(v value, path text) (value, error) {
	for _, key := range path.splitBy(".", -1) {
		var err error
		if v, err = member(v, key); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// mapped is map(attribute=…, default=…) and map('filter', …).
func (in *interp) mapped(v value, a arguments) (value, error) {
	items, err := in.itemsIfAny(v)
	if err != nil {
		return nil, err
	}
	apply, err := in.mapper(a)
	if err != nil {
		return nil, err
	}
	out := &list{items: make([]value, len(items))}
	for i, it := range items {
		if out.items[i], err = apply(it); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (in *interp) mapper(a arguments) (func(value) (value, error), error) {
	if len(a.pos) > 0 {
		id, err := a.text(0, "filter")
		rest := arguments{a.pos[1:], a.names, a.named}
		return func(v value) (value, error) { return in.filter(id.s, v, rest) }, err
	}
	path, err := a.text(0, "attribute")
	if err != nil {
		return nil, err
	}
	other, hasDefault := a.get(1, "default")
	return func(v value) (value, error) {
		x, err := attribute(v, path)
		if _, missing := x.(undefined); missing && hasDefault {
			return other, nil
		}
		return x, err
	}, nil
}
