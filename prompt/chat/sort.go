package chat

import (
	"fmt"
	"slices"
)

// ordered is sort, min, max and dictsort. Strings compare without regard to
// case unless asked otherwise, as in Jinja2.
func (in *interp) ordered(id string, v value, a arguments) (value, error) {
	if id == "dictsort" {
		return in.dictSort(v, a)
	}
	items, err := in.items(v)
	if err != nil {
		return nil, err
	}
	var reverse value = false
	if id == "sort" {
		reverse, _ = a.get(0, "reverse")
		a.pos = a.pos[min(1, len(a.pos)):]
	}
	key, err := sortKey(a, 0, 1)
	if err != nil {
		return nil, err
	}
	out, err := sortBy(items, key, truth(reverse) || id == "max")
	switch {
	case err != nil:
		return nil, err
	case id == "sort":
		return &list{items: out}, nil
	case len(out) == 0:
		return undefined{id + " of nothing"}, nil
	}
	return out[0], nil
}

// sortKey is what items are compared by: an attribute or themselves.
func sortKey(a arguments, caseAt, attrAt int) (func(value) (value, error), error) {
	exact, _ := a.get(caseAt, "case_sensitive")
	fold := func(v value) value {
		if truth(exact) {
			return v
		}
		return folded(v)
	}
	if v, ok := a.get(attrAt, "attribute"); !ok || v == nil {
		return func(v value) (value, error) { return fold(v), nil }, nil
	}
	path, err := a.text(attrAt, "attribute")
	return func(v value) (value, error) {
		x, err := attribute(v, path)
		return fold(x), err
	}, err
}

func (in *interp) dictSort(v value, a arguments) (value, error) {
	d, ok := v.(*dict)
	if !ok {
		return nil, fmt.Errorf("%s is no mapping", typeName(v))
	}
	exact, _ := a.get(0, "case_sensitive")
	reverse, _ := a.get(2, "reverse")
	by := 0
	if _, ok := a.get(1, "by"); ok {
		t, err := a.text(1, "by")
		if err != nil {
			return nil, err
		}
		by = map[string]int{"value": 1}[t.s]
	}
	key := func(pair value) (value, error) {
		x := pair.(*list).items[by]
		if truth(exact) {
			return x, nil
		}
		return folded(x), nil
	}
	out, err := sortBy(d.pairs(), key, truth(reverse))
	if err != nil {
		return nil, err
	}
	return &list{items: out}, in.step(len(out))
}

// sortBy is a stable sort by key.
func sortBy(items []value, key func(value) (value, error), reverse bool) ([]value, error) {
	type keyed struct{ key, item value }
	all := make([]keyed, len(items))
	for i, it := range items {
		k, err := key(it)
		if err != nil {
			return nil, err
		}
		all[i] = keyed{k, it}
	}
	var err error
	slices.SortStableFunc(all, func(x, y keyed) int {
		sign, ok := order(x.key, y.key)
		if !ok {
			err = fmt.Errorf("cannot compare %s and %s", typeName(x.key), typeName(y.key))
		}
		if reverse {
			return -sign
		}
		return sign
	})
	out := make([]value, len(all))
	for i, k := range all {
		out[i] = k.item
	}
	return out, err
}

func folded(v value) value {
	if t, ok := v.(text); ok {
		return changeCase("lower", t)
	}
	return v
}
