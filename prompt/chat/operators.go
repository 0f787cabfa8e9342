package chat

import (
	"errors"
	"fmt"
	"math"
	"strings"
)

var errOverflow = errors.New("integer out of range")

func (u unary) eval(in *interp) (value, error) {
	v, err := in.eval(u.x)
	if err != nil {
		return nil, err
	}
	if u.op == "not" {
		return !truth(v), nil
	}
	i, f, isInt, ok := number(v)
	switch {
	case !ok:
		return nil, at(u.line, "operator "+u.op, fmt.Errorf("%s is no number", typeName(v)))
	case u.op == "+" && isInt:
		return i, nil
	case u.op == "+":
		return f, nil
	case isInt:
		return -i, nil
	}
	return -f, nil
}

func (b binary) eval(in *interp) (value, error) {
	x, err := in.eval(b.x)
	if err != nil {
		return nil, err
	}
	if b.op == "and" && !truth(x) || b.op == "or" && truth(x) {
		return x, nil
	}
	y, err := in.eval(b.y)
	if err != nil || b.op == "and" || b.op == "or" {
		return y, err
	}
	v, err := in.operate(b.op, x, y)
	return v, at(b.line, "operator "+b.op, err)
}

func (in *interp) operate(op string, x, y value) (value, error) {
	if op == "~" {
		return in.tilde(x, y)
	}
	a, ok := x.(text)
	b, ok2 := y.(text)
	if ok && ok2 && op == "+" {
		return concat(a, b), in.spend(len(a.s) + len(b.s))
	}
	l, ok := x.(*list)
	m, ok2 := y.(*list)
	if ok && ok2 && op == "+" && l.tuple == m.tuple {
		items := append(append([]value(nil), l.items...), m.items...)
		return &list{items: items, tuple: l.tuple}, in.step(len(items))
	}
	if op == "*" {
		if t, n, ok := repeated(x, y); ok {
			return in.repeat(t, n)
		}
	}
	return arithmetic(op, x, y)
}

func (in *interp) tilde(x, y value) (value, error) {
	a, err := in.str(x)
	if err != nil {
		return nil, err
	}
	b, err := in.str(y)
	if err != nil {
		return nil, err
	}
	return concat(a, b), in.spend(len(a.s) + len(b.s))
}

// repeated recognises string * integer, either way round.
func repeated(x, y value) (text, int64, bool) {
	if t, ok := y.(text); ok {
		x, y = t, x
	}
	t, ok := x.(text)
	n, _, isInt, ok2 := number(y)
	return t, n, ok && ok2 && isInt
}

func (in *interp) repeat(t text, n int64) (value, error) {
	if n <= 0 || t.s == "" {
		return text{}, nil
	}
	if n > maxOutput/int64(len(t.s)) {
		return nil, in.checkSize(maxOutput + 1)
	}
	if err := in.spend(int(n) * len(t.s)); err != nil {
		return nil, err
	}
	var b builder
	for range n {
		b.add(t)
	}
	return b.text(), nil
}

func arithmetic(op string, x, y value) (value, error) {
	i, f, isInt, ok := number(x)
	j, g, isInt2, ok2 := number(y)
	if !ok || !ok2 {
		return nil, fmt.Errorf("cannot be applied to %s and %s", typeName(x), typeName(y))
	}
	if (op == "/" || op == "//" || op == "%") && g == 0 {
		return nil, errors.New("division by zero")
	}
	if isInt && isInt2 && op != "/" {
		return integerOp(op, i, j)
	}
	switch op {
	case "+":
		return f + g, nil
	case "-":
		return f - g, nil
	case "*":
		return f * g, nil
	case "/":
		return f / g, nil
	case "//":
		return math.Floor(f / g), nil
	}
	r := math.Mod(f, g)
	if r != 0 && (r < 0) != (g < 0) {
		r += g
	}
	return r, nil
}

// integerOp computes with Python's rounding towards minus infinity.
func integerOp(op string, i, j int64) (value, error) {
	switch op {
	case "+":
		if s := i + j; (s > i) == (j > 0) {
			return s, nil
		}
	case "-":
		if d := i - j; (d < i) == (j > 0) {
			return d, nil
		}
	case "*":
		if p := i * j; i == 0 || p/i == j && (i != -1 || j != math.MinInt64) {
			return p, nil
		}
	case "//":
		q := i / j
		if i%j != 0 && (i < 0) != (j < 0) {
			q--
		}
		if j != -1 || i != math.MinInt64 {
			return q, nil
		}
	default:
		r := i % j
		if r != 0 && (r < 0) != (j < 0) {
			r += j
		}
		return r, nil
	}
	return nil, errOverflow
}

func (c compare) eval(in *interp) (value, error) {
	x, err := in.eval(c.x)
	if err != nil {
		return nil, err
	}
	for i, op := range c.ops {
		y, err := in.eval(c.ys[i])
		if err != nil {
			return nil, err
		}
		ok, err := in.compare(op, x, y)
		if err != nil || !ok {
			return false, at(c.line, "operator "+op, err)
		}
		x = y
	}
	return true, nil
}

func (in *interp) compare(op string, x, y value) (bool, error) {
	switch op {
	case "==", "!=":
		eq, err := in.equal(x, y, 0)
		return eq == (op == "=="), err
	case "in", "not in":
		ok, err := in.contains(y, x)
		return ok == (op == "in"), err
	}
	sign, ok := order(x, y)
	if !ok {
		return false, fmt.Errorf("cannot compare %s and %s", typeName(x), typeName(y))
	}
	switch op {
	case "<":
		return sign < 0, nil
	case "<=":
		return sign <= 0, nil
	case ">":
		return sign > 0, nil
	}
	return sign >= 0, nil
}

func order(x, y value) (int, bool) {
	a, ok := x.(text)
	b, ok2 := y.(text)
	if ok && ok2 {
		return strings.Compare(a.s, b.s), true
	}
	_, f, _, ok := number(x)
	_, g, _, ok2 := number(y)
	switch {
	case !ok || !ok2:
		return 0, false
	case f < g:
		return -1, true
	case f > g:
		return 1, true
	}
	return 0, true
}

// equal is Python's ==: 1, 1.0 and true are the same, other types never.
func (in *interp) equal(x, y value, depth int) (bool, error) {
	if depth > maxData {
		return false, fmt.Errorf("data nested too deep: %w", ErrLimit)
	}
	if err := in.step(1); err != nil {
		return false, err
	}
	if _, f, _, ok := number(x); ok {
		_, g, _, ok := number(y)
		return ok && f == g, nil
	}
	switch x := x.(type) {
	case nil:
		return y == nil, nil
	case undefined:
		_, ok := y.(undefined)
		return ok, nil
	case text:
		y, ok := y.(text)
		return ok && x.s == y.s, nil
	case *list:
		y, ok := y.(*list)
		if !ok || x.tuple != y.tuple || len(x.items) != len(y.items) {
			return false, nil
		}
		for i := range x.items {
			if eq, err := in.equal(x.items[i], y.items[i], depth+1); !eq || err != nil {
				return false, err
			}
		}
		return true, nil
	case *dict:
		return in.equalDicts(x, y, depth)
	case *namespace:
		y, ok := y.(*namespace)
		return ok && x == y, nil
	}
	return false, nil
}

func (in *interp) equalDicts(x *dict, v value, depth int) (bool, error) {
	y, ok := v.(*dict)
	if !ok || len(x.keys) != len(y.keys) {
		return false, nil
	}
	for i, k := range x.keys {
		other, ok := y.get(k)
		if !ok {
			return false, nil
		}
		if eq, err := in.equal(x.values[i], other, depth+1); !eq || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (in *interp) contains(container, x value) (bool, error) {
	switch c := container.(type) {
	case text:
		t, ok := x.(text)
		if !ok {
			return false, fmt.Errorf("%s cannot be in a string", typeName(x))
		}
		return strings.Contains(c.s, t.s), nil
	case *dict:
		_, ok := c.get(x)
		return ok, nil
	case *list:
		for _, item := range c.items {
			if eq, err := in.equal(item, x, 0); eq || err != nil {
				return eq, err
			}
		}
		return false, nil
	case undefined:
		return false, nil
	}
	return false, fmt.Errorf("%s contains nothing", typeName(container))
}
